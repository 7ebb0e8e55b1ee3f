// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/kernel_gains.hpp"

#include <gtest/gtest.h>

namespace trainsim::cli {
namespace {

program::Instruction compute(std::uint32_t segment, Seconds seconds) {
  program::Instruction instruction;
  instruction.op = program::Opcode::kCompute;
  instruction.id = segment;
  instruction.amount = seconds;
  return instruction;
}

program::Kernel kernel(const char* name, Seconds seconds) {
  program::Kernel kernel;
  kernel.name = name;
  kernel.seconds = seconds;
  return kernel;
}

/// One rank that runs "a" for 2 s and "b" for 3 s in one segment, twice, and then "a" for 4 s.
program::Job small_job() {
  program::Job job;
  job.programs.resize(1);
  job.ranks.resize(1);
  program::Program& program = job.programs[0];
  program.segments = {{"both", {kernel("a", 2), kernel("b", 3)}, 5}, {"one", {kernel("a", 4)}, 4}};
  program.stream(program::Stream::kCompute) = {compute(0, 5), compute(0, 5), compute(1, 4)};
  return job;
}

TEST(KernelGains, AreStepTimesWithFasterKernels) {
  report::Summary summary;
  summary.step_time = 14;
  summary.kernels = {{"a", "matmul", "", 8}, {"b", "memory", "", 6}, {"small", "memory", "", 0.01}};
  const std::vector<report::KernelGain> gains = kernel_gains(small_job(), summary, {});
  // Of 14 s "a" takes 8 and "b" 6; what takes less than 1 % is not tried.
  ASSERT_EQ(gains.size(), 2U);
  EXPECT_EQ(gains[0].name, "a");
  EXPECT_DOUBLE_EQ(gains[0].if_twice_as_fast, 10);
  EXPECT_DOUBLE_EQ(gains[0].if_free, 6);
  EXPECT_DOUBLE_EQ(gains[1].if_twice_as_fast, 11);
  EXPECT_DOUBLE_EQ(gains[1].if_free, 8);
}

TEST(KernelGains, StopWhereTheHostIsTheLimit) {
  // The host needs 13 s for its launches, whatever the GPU takes.
  program::Job job = small_job();
  job.programs[0].segments[1].launch_seconds = 13;
  report::Summary summary;
  summary.step_time = 14;
  summary.kernels = {{"a", "matmul", "", 8}};
  EXPECT_DOUBLE_EQ(kernel_gains(job, summary, {})[0].if_free, 13);
}

}  // namespace
}  // namespace trainsim::cli
