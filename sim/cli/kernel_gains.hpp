// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/engine/executor.hpp"
#include "sim/program/job.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// The job with every kernel of a name taking `factor` times as long; the host launches it as before.
program::Job with_kernel_time(program::Job job, const std::string& kernel, double factor);

/// What the step would take if each of the largest kernels were faster: simulated, without contention between
/// transfers.
std::vector<report::KernelGain> kernel_gains(const program::Job& job, const report::Summary& summary,
                                             const engine::Progress& progress);

}  // namespace trainsim::cli
