// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/kernel_gains.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace trainsim::cli {

namespace {

/// Kernels that are tried, and the share of the step below which none is.
constexpr std::size_t kMostKernels = 16;
constexpr double kSmallKernel = 0.01;

Seconds step_time(const program::Job& job) {
  return engine::make_ideal_executor({})->run(job).step_time;
}

}  // namespace

program::Job with_kernel_time(program::Job job, const std::string& kernel, double factor) {
  for (program::Program& program : job.programs) {
    for (program::Segment& segment : program.segments) {
      for (program::Kernel& each : segment.kernels) {
        if (each.name != kernel) continue;
        segment.seconds += (factor - 1.0) * each.seconds;
        each.seconds *= factor;
      }
      segment.seconds = std::max(0.0, segment.seconds);
    }
    for (program::Instruction& instruction : program.stream(program::Stream::kCompute)) {
      if (instruction.op == program::Opcode::kCompute)
        instruction.amount = program.segments[instruction.id].seconds;
    }
  }
  return job;
}

std::vector<report::KernelGain> kernel_gains(const program::Job& job, const report::Summary& summary,
                                             const engine::Progress& progress) {
  std::vector<report::KernelGain> gains;
  const std::size_t most = std::min(kMostKernels, summary.kernels.size());
  gains.reserve(most);
  for (std::size_t i = 0; i < most; ++i) {
    const report::KernelShare& kernel = summary.kernels[i];
    if (kernel.seconds < kSmallKernel * summary.step_time) break;
    gains.push_back({kernel.name, step_time(with_kernel_time(job, kernel.name, 0.5)),
                     step_time(with_kernel_time(job, kernel.name, 0.0))});
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(most));
  }
  return gains;
}

}  // namespace trainsim::cli
