// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/program/program.hpp"

namespace trainsim::cli {

/// Time of one collective over the first `gpus` GPUs of a cluster with nothing else on the network, for a
/// tensor of `bytes`. REQUIRES: gpus >= 2, and whole nodes when they are more than one.
Seconds collective_time(const hardware::ClusterSpec& cluster, std::int64_t gpus, program::CollectiveOp op,
                        double bytes);

}  // namespace trainsim::cli
