// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/sweep_batch.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace trainsim::cli {
namespace {

sweep::Sweep sweep_of(const std::vector<std::string>& varied) {
  std::vector<sweep::Axis> axes;
  axes.reserve(varied.size());
  for (const std::string& text : varied) axes.push_back(sweep::vary_axis(text));
  return sweep::Sweep(axes);
}

/// All points of a sweep.
std::vector<PointBatch> batches(const sweep::Sweep& sweep, std::size_t workers) {
  std::vector<std::size_t> points(sweep.size());
  std::iota(points.begin(), points.end(), 0);
  return batches_of(sweep, points, workers);
}

using Batches = std::vector<PointBatch>;

TEST(SweepBatches, HoldPointsOfOneStep) {
  // The last axis changes fastest.
  EXPECT_EQ(batches(sweep_of({"gpus=8,16", "run.steps=1,2,3"}), 1), (Batches{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(batches(sweep_of({"run.steps=1,2,3", "gpus=8,16"}), 1), (Batches{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(batches(sweep_of({"gpus=8,16", "plan.micro_batch_size=1,2"}), 1), (Batches{{0}, {1}, {2}, {3}}));
}

TEST(SweepBatches, KeepWorkersBusy) {
  EXPECT_EQ(batches(sweep_of({"run.steps=1..5"}), 2), (Batches{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(batches(sweep_of({"run.steps=1..3"}), 8), (Batches{{0}, {1}, {2}}));
}

TEST(SweepBatches, AreNotSoLargeThatAnInterruptionCostsMuch) {
  const Batches all = batches(sweep_of({"run.steps=1..120"}), 1);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].size(), 50U);
  EXPECT_EQ(all[2].size(), 20U);
}

TEST(SweepBatches, TakeThePointsOfAShard) {
  EXPECT_EQ(batches_of(sweep_of({"gpus=8,16", "run.steps=1,2,3"}), {1, 3, 5}, 1), (Batches{{1}, {3, 5}}));
  EXPECT_EQ(batches_of(sweep_of({"gpus=8,16"}), {}, 4), Batches());
}

}  // namespace
}  // namespace trainsim::cli
