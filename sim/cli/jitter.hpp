// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// The cluster as it is in one step: every GPU of the job slower by a factor of its own, every NIC left with
/// a share of its bandwidth of its own. Both are exp(|x|) with x normal, of standard deviation
/// `jitter.compute` and `jitter.network`; the same seed and step give the same cluster.
hardware::ClusterSpec jittered(const config::Experiment& experiment, std::uint64_t step);

/// Simulates `jitter.steps` steps, `workers` at a time, each on its own jittered cluster. Ranks are no longer
/// alike, so that each is simulated. `progress` gets a share in [0, 1].
report::JitterResult simulate_steps(const config::Experiment& experiment, std::size_t workers,
                                    const std::function<void(double)>& progress);

}  // namespace trainsim::cli
