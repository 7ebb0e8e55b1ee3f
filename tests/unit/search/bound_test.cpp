// SPDX-License-Identifier: Apache-2.0
#include "sim/search/bound.hpp"

#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::search {
namespace {

/// Two stages with forward 1 s and backward 2 s, and 0.5 s after the last slot of the first: with two
/// micro-batches the second stage runs from 1 s to 7 s, the first from 0 s to 9 s, and the step ends at 9.5
/// s. With m micro-batches the bound is 1 + 3 m + 2.5 (second stage), what 1F1B takes: (m + 1) * 3 + 0.5.
TEST(Bound, IsTheClosedFormForEqualStages) {
  program::Job job;
  job.programs.resize(2);
  job.ranks.resize(2);
  program::Timeline timeline;
  timeline.ranks.resize(2);
  timeline.step_time = 9.5;
  const std::vector<program::SlotInfo> slots = {{'F', 0, 0}, {'F', 1, 0}, {'B', 0, 0}, {'B', 1, 0}};
  job.programs[0].slots = slots;
  job.programs[1].slots = {slots[0], slots[2], slots[1], slots[3]};
  job.ranks[1].program = 1;
  timeline.ranks[0].slots = {{0, 0, 1}, {1, 1, 2}, {2, 4, 6}, {3, 7, 9}};
  timeline.ranks[0].first_slot = 0;
  timeline.ranks[0].last_slot = 9;
  timeline.ranks[1].slots = {{0, 1, 2}, {1, 2, 4}, {2, 4, 5}, {3, 5, 7}};
  timeline.ranks[1].first_slot = 1;
  timeline.ranks[1].last_slot = 7;
  EXPECT_DOUBLE_EQ(step_time_bound(job, timeline, 2), 9.5);
  EXPECT_DOUBLE_EQ(step_time_bound(job, timeline, 10), 33.5);
}

/// The first pass of a micro-batch may wait for what others do not, so the shortest counts.
TEST(Bound, TakesTheShortestSlots) {
  program::Job job;
  job.programs.resize(1);
  job.ranks.resize(1);
  job.programs[0].slots = {{'F', 0, 0}, {'B', 0, 0}, {'F', 1, 0}, {'B', 1, 0}};
  program::Timeline timeline;
  timeline.ranks.resize(1);
  timeline.ranks[0].slots = {{0, 0, 5}, {1, 5, 7}, {2, 7, 8}, {3, 8, 11}};
  timeline.ranks[0].last_slot = 11;
  timeline.step_time = 11;
  EXPECT_DOUBLE_EQ(step_time_bound(job, timeline, 4), 4 * (1 + 2));
}

TEST(Bound, NeedsTwoMicroBatchesOrTwoPerInterleavedStage) {
  plan::ParallelPlan plan = tests::small_plan(16, 1, 4, 1);
  EXPECT_EQ(short_step(plan), 2);
  plan = tests::small_plan(16, 1, 4, 2);
  plan.global_batch_size = 16 * plan.data_parallel * plan.micro_batch_size;
  EXPECT_EQ(short_step(plan), 8);
  plan = tests::small_plan(16, 1, 1, 1);
  plan.global_batch_size = plan.data_parallel * plan.micro_batch_size;
  EXPECT_EQ(short_step(plan), 1);
}

}  // namespace
}  // namespace trainsim::search
