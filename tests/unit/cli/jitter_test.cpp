// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/jitter.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::cli {
namespace {

config::Experiment experiment() {
  config::Experiment experiment;
  experiment.model = tests::small_gpt();
  experiment.cluster = tests::round_cluster();
  experiment.plan = tests::small_plan(16, 2, 2, 1);
  experiment.jitter = {40, 0.05, 0.2, 1};
  return experiment;
}

TEST(Jitter, GivesEachGpuAndNicASpeedOfItsOwn) {
  const hardware::ClusterSpec cluster = jittered(experiment(), 3);
  ASSERT_EQ(cluster.slow_gpus.size(), 16U);
  ASSERT_EQ(cluster.faults.size(), 16U);
  EXPECT_NE(cluster.slow_gpus[0].slowdown, cluster.slow_gpus[1].slowdown);
  for (const hardware::SlowGpu& slow : cluster.slow_gpus) EXPECT_GE(slow.slowdown, 1.0);
  for (const hardware::Fault& fault : cluster.faults)
    EXPECT_TRUE(fault.bandwidth > 0 && fault.bandwidth <= 1);
}

TEST(Jitter, IsTheSameForASeedAndStepOnly) {
  const auto first = [](std::uint64_t seed, std::uint64_t step) {
    config::Experiment changed = experiment();
    changed.jitter.seed = seed;
    return jittered(changed, step).slow_gpus[0].slowdown;
  };
  EXPECT_EQ(first(1, 3), first(1, 3));
  EXPECT_NE(first(1, 3), first(1, 4));
  EXPECT_NE(first(1, 3), first(2, 3));
}

/// Of |x| with x normal of deviation 0.05, the mean is 0.05 sqrt(2 / pi) = 0.0399.
TEST(Jitter, HasTheDeviationThatIsAskedFor) {
  double sum = 0;
  for (std::uint64_t step = 0; step < 400; ++step) {
    for (const hardware::SlowGpu& slow : jittered(experiment(), step).slow_gpus)
      sum += std::log(slow.slowdown);
  }
  EXPECT_NEAR(sum / (400 * 16), 0.0399, 0.002);
}

TEST(Jitter, OnlySlowsStepsAndOrdersItsQuantiles) {
  config::Experiment calm = experiment();
  calm.jitter.compute = calm.jitter.network = 0;
  const report::JitterResult still = simulate_steps(calm, 2, [](double) {});
  EXPECT_DOUBLE_EQ(still.p50, still.p99);
  const report::JitterResult moved = simulate_steps(experiment(), 2, [](double) {});
  EXPECT_GT(moved.p50, still.p50);
  EXPECT_LE(moved.p50, moved.p90);
  EXPECT_LE(moved.p90, moved.p99);
  EXPECT_GT(moved.mean, still.mean);
}

}  // namespace
}  // namespace trainsim::cli
