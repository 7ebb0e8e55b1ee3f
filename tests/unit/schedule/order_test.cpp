// SPDX-License-Identifier: Apache-2.0
// The order of slots of each schedule, against orders worked out by hand.
#include <gtest/gtest.h>

#include "tests/unit/schedule/written_schedule.hpp"

namespace trainsim::schedule {
namespace {

TEST(Gpipe, RunsAllForwardsThenAllBackwardsOnEveryStage) {
  const Schedule schedule = gpipe(2, 4);
  EXPECT_EQ(schedule.stages, 2);
  EXPECT_EQ(schedule.chunks, 1);
  EXPECT_EQ(schedule.micro_batches, 4);
  ASSERT_EQ(schedule.slots.size(), 2U);
  EXPECT_EQ(schedule.slots[0], slots("F0 F1 F2 F3 B0 B1 B2 B3"));
  EXPECT_EQ(schedule.slots[1], slots("F0 F1 F2 F3 B0 B1 B2 B3"));
}

TEST(OneFOneB, TwoStagesFourMicroBatches) {
  const Schedule schedule = one_f_one_b(2, 4);
  ASSERT_EQ(schedule.slots.size(), 2U);
  EXPECT_EQ(schedule.slots[0], slots("F0 F1 B0 F2 B1 F3 B2 B3"));
  EXPECT_EQ(schedule.slots[1], slots("F0 B0 F1 B1 F2 B2 F3 B3"));
}

// Figure 4 (top) of arXiv 2104.04473, whose devices and micro-batches count from 1.
TEST(OneFOneB, FourStagesEightMicroBatches) {
  const Schedule schedule = one_f_one_b(4, 8);
  ASSERT_EQ(schedule.slots.size(), 4U);
  EXPECT_EQ(schedule.slots[0], slots("F0 F1 F2  F3 B0 F4 B1 F5 B2 F6 B3 F7 B4  B5 B6 B7"));
  EXPECT_EQ(schedule.slots[1], slots("F0 F1  F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5  B6 B7"));
  EXPECT_EQ(schedule.slots[2], slots("F0  F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6  B7"));
  EXPECT_EQ(schedule.slots[3], slots("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"));
}

TEST(OneFOneB, FewerMicroBatchesThanStagesMakeEarlyStagesRunAllForwardsFirst) {
  const Schedule schedule = one_f_one_b(4, 2);
  ASSERT_EQ(schedule.slots.size(), 4U);
  EXPECT_EQ(schedule.slots[0], slots("F0 F1 B0 B1"));
  EXPECT_EQ(schedule.slots[1], slots("F0 F1 B0 B1"));
  EXPECT_EQ(schedule.slots[2], slots("F0 F1 B0 B1"));
  EXPECT_EQ(schedule.slots[3], slots("F0 B0 F1 B1"));
}

TEST(OneFOneB, OneStageAlternates) {
  EXPECT_EQ(one_f_one_b(1, 2).slots[0], slots("F0 B0 F1 B1"));
}

// p = 2, v = 2, m = 4: 8 passes per stage. Pass k of forward has chunk (k mod 4) / 2 and micro-batch
// 2 (k / 4) + k mod 2; backward swaps the chunks:
//   k         0     1     2     3     4     5     6     7
//   forward   F0.0  F1.0  F0.1  F1.1  F2.0  F3.0  F2.1  F3.1
//   backward  B0.1  B1.1  B0.0  B1.0  B2.1  B3.1  B2.0  B3.0
// Warm-up: stage 0 runs 2 (2-0-1) + (2-1) 2 = 4 forwards, stage 1 runs 2 (2-1-1) + (2-1) 2 = 2. Then pairs of
// the next forward and the next backward (4 on stage 0, 6 on stage 1), then the last 4 or 2 backwards.
TEST(Interleaved, TwoStagesTwoChunksFourMicroBatches) {
  const Schedule schedule = interleaved(2, 2, 4);
  EXPECT_EQ(schedule.chunks, 2);
  ASSERT_EQ(schedule.slots.size(), 2U);
  EXPECT_EQ(schedule.slots[0], slots("F0.0 F1.0 F0.1 F1.1 "
                                     "F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 "
                                     "B2.1 B3.1 B2.0 B3.0"));
  EXPECT_EQ(schedule.slots[1], slots("F0.0 F1.0 "
                                     "F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 "
                                     "B2.0 B3.0"));
}

TEST(Interleaved, OneGroupOfMicroBatchesRunsAllForwardsFirst) {
  const Schedule schedule = interleaved(2, 2, 2);
  ASSERT_EQ(schedule.slots.size(), 2U);
  for (const auto& order : schedule.slots) {
    EXPECT_EQ(order, slots("F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0"));
  }
}

TEST(Interleaved, OneChunkIsOneFOneB) {
  EXPECT_EQ(interleaved(4, 1, 8).slots, one_f_one_b(4, 8).slots);
  EXPECT_EQ(interleaved(4, 1, 3).slots, one_f_one_b(4, 3).slots);
}

plan::ParallelPlan plan_of(plan::ScheduleKind kind, std::int64_t stages, std::int64_t chunks,
                           std::int64_t micro_batches) {
  plan::ParallelPlan plan;
  plan.schedule = kind;
  plan.gpus = 2 * stages;
  plan.pipeline_parallel = stages;
  plan.virtual_pipeline = chunks;
  plan.data_parallel = 2;
  plan.micro_batch_size = 3;
  plan.global_batch_size = micro_batches * 2 * 3;
  return plan;
}

TEST(Build, ChoosesTheScheduleOfThePlan) {
  EXPECT_EQ(build(plan_of(plan::ScheduleKind::kGpipe, 2, 1, 4)).slots, gpipe(2, 4).slots);
  EXPECT_EQ(build(plan_of(plan::ScheduleKind::kOneFOneB, 2, 1, 4)).slots, one_f_one_b(2, 4).slots);
  EXPECT_EQ(build(plan_of(plan::ScheduleKind::kInterleaved, 2, 2, 4)).slots, interleaved(2, 2, 4).slots);
}

TEST(BubbleRatioTheory, IsTheClosedFormOfThePlansSchedule) {
  // p = 4, m = 8: 3 / (8 + 3) plain; with v = 2, 3 / (16 + 3).
  EXPECT_DOUBLE_EQ(bubble_ratio_theory(plan_of(plan::ScheduleKind::kGpipe, 4, 1, 8)).value(), 3.0 / 11.0);
  EXPECT_DOUBLE_EQ(bubble_ratio_theory(plan_of(plan::ScheduleKind::kOneFOneB, 4, 1, 8)).value(), 3.0 / 11.0);
  EXPECT_DOUBLE_EQ(bubble_ratio_theory(plan_of(plan::ScheduleKind::kInterleaved, 4, 2, 8)).value(),
                   3.0 / 19.0);
  EXPECT_EQ(bubble_ratio_theory(plan_of(plan::ScheduleKind::kOneFOneB, 1, 1, 8)).value(), 0.0);
}

}  // namespace
}  // namespace trainsim::schedule
