// SPDX-License-Identifier: Apache-2.0
// What the checker accepts, and its exact words for what it does not.
#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/schedule/written_schedule.hpp"

namespace trainsim::schedule {
namespace {

/// The messages, one a line.
std::string messages(const Schedule& schedule) {
  std::string text;
  for (const Problem& problem : check(schedule)) {
    EXPECT_EQ(problem.field, "plan.schedule");
    text += problem.message + "\n";
  }
  return text;
}

using Needs = std::array<std::optional<StagedSlot>, 2>;

// p = 2, v = 2: virtual stages 0 to 3 are stage 0 chunk 0, stage 1 chunk 0, stage 0 chunk 1, stage 1 chunk 1.
TEST(Dependencies, FollowTheModelThroughStagesAndChunks) {
  const Schedule schedule = interleaved(2, 2, 4);
  const auto at = [](std::int64_t stage, const char* slot) { return StagedSlot{stage, slots(slot).front()}; };
  EXPECT_EQ(dependencies(schedule, at(0, "F3.0")), Needs());
  EXPECT_EQ(dependencies(schedule, at(1, "F3.0")), (Needs{at(0, "F3.0")}));
  EXPECT_EQ(dependencies(schedule, at(0, "F3.1")), (Needs{at(1, "F3.0")}));
  EXPECT_EQ(dependencies(schedule, at(1, "B3.1")), (Needs{at(1, "F3.1")}));
  EXPECT_EQ(dependencies(schedule, at(0, "B3.1")), (Needs{at(0, "F3.1"), at(1, "B3.1")}));
  EXPECT_EQ(dependencies(schedule, at(1, "B3.0")), (Needs{at(1, "F3.0"), at(0, "B3.1")}));
  EXPECT_EQ(dependencies(schedule, at(0, "W3.1")), (Needs{at(0, "B3.1")}));
}

TEST(ScheduleCheck, AcceptsCompleteSchedules) {
  EXPECT_EQ(messages(written(1, 2, {"F0 F1 B0 B1", "F0 B0 F1 B1"})), "");
  EXPECT_EQ(messages(written(1, 2, {"F0 F1 B1 B0", "F0 F1 B1 B0"})), "");
}

TEST(ScheduleCheck, AcceptsWeightSlotsForEveryBackward) {
  EXPECT_EQ(messages(written(1, 2, {"F0 F1 B0 W0 B1 W1", "F0 B0 F1 B1 W0 W1"})), "");
}

TEST(ScheduleCheck, NamesMissingSlots) {
  EXPECT_EQ(
      messages(written(1, 2, {"F0 F1 B0 B1", "F0 B0 B1"})),
      "F(micro-batch 1, chunk 0) on stage 1 is missing; every micro-batch passes every chunk forward and "
      "backward once\n");
}

TEST(ScheduleCheck, NamesDoubleSlots) {
  EXPECT_EQ(messages(written(1, 2, {"F0 F1 B0 B1 B0", "F0 B0 F1 B1"})),
            "B(micro-batch 0, chunk 0) on stage 0 runs twice, as slots 2 and 4; remove one\n");
}

TEST(ScheduleCheck, NamesSlotsOutOfRange) {
  EXPECT_EQ(
      messages(written(1, 2, {"F0 F1 B0 B1 F2", "F0.-1 F0 B0 F1 B1 B1.1"})),
      "F(micro-batch 2, chunk 0) on stage 0 (slot 4) does not exist; micro-batches go from 0 to 1 and chunks "
      "from 0 to 0\n"
      "F(micro-batch 0, chunk -1) on stage 1 (slot 0) does not exist; micro-batches go from 0 to 1 and "
      "chunks "
      "from 0 to 0\n"
      "B(micro-batch 1, chunk 1) on stage 1 (slot 5) does not exist; micro-batches go from 0 to 1 and chunks "
      "from 0 to 0\n");
}

TEST(ScheduleCheck, NegativeMicroBatchIsOutOfRange) {
  EXPECT_EQ(messages(written(1, 1, {"F-1 F0 B0"})),
            "F(micro-batch -1, chunk 0) on stage 0 (slot 0) does not exist; micro-batches go from 0 to 0 and "
            "chunks "
            "from 0 to 0\n");
}

TEST(ScheduleCheck, WantsWeightSlotsForAllOrNone) {
  EXPECT_EQ(
      messages(written(1, 2, {"F0 F1 B0 W0 B1 W1", "F0 B0 F1 B1 W0"})),
      "W(micro-batch 1, chunk 0) on stage 1 is missing; either every backward has a weight slot or none has "
      "one\n");
}

TEST(ScheduleCheck, ReportsEveryFaultAtOnce) {
  EXPECT_EQ(
      messages(written(1, 2, {"F0 F0 B0 B1", "F0 B0 F1 B1"})),
      "F(micro-batch 0, chunk 0) on stage 0 runs twice, as slots 0 and 1; remove one\n"
      "F(micro-batch 1, chunk 0) on stage 0 is missing; every micro-batch passes every chunk forward and "
      "backward once\n");
}

TEST(ScheduleCheck, CountsTheFaultsAfterTheFirstTwenty) {
  const Problems problems = check(written(1, 12, {""}));
  ASSERT_EQ(problems.size(), 21U);
  EXPECT_EQ(problems.back().message, "the schedule has 4 more problems of these kinds; cure the first ones");
}

TEST(ScheduleCheck, WantsSlotsForEveryStage) {
  Schedule schedule = one_f_one_b(4, 4);
  schedule.slots.pop_back();
  EXPECT_EQ(messages(schedule), "the schedule lists slots for 3 stages, but the pipeline has 4\n");
}

TEST(ScheduleCheck, WantsPositiveCounts) {
  EXPECT_EQ(messages(Schedule{1, 0, 4, {{}}}),
            "a schedule needs at least one stage, chunk and micro-batch, not 1, 0 and 4\n");
}

// Stage 0 wants micro-batch 0 back before it sends micro-batch 1; stage 1 wants micro-batch 1 before it
// answers.
TEST(ScheduleCheck, NamesTheCycleOfADeadlock) {
  EXPECT_EQ(
      messages(written(1, 2, {"F0 B0 F1 B1", "F0 F1 B0 B1"})),
      "the schedule deadlocks: stage 0 waits at B(micro-batch 0, chunk 0) for B(micro-batch 0, chunk 0) on "
      "stage 1, which waits at F(micro-batch 1, chunk 0) for F(micro-batch 1, chunk 0) on stage 0; to break "
      "the circle, run a slot that is waited for before the slot at which its stage waits\n");
}

TEST(ScheduleCheck, NamesAStageThatWaitsForItself) {
  EXPECT_EQ(
      messages(written(1, 1, {"F0 B0", "B0 F0"})),
      "the schedule deadlocks: stage 1 waits at B(micro-batch 0, chunk 0) for its own F(micro-batch 0, chunk "
      "0); to break the circle, run a slot that is waited for before the slot at which its stage waits\n");
  EXPECT_EQ(
      messages(written(1, 1, {"F0 W0 B0"})),
      "the schedule deadlocks: stage 0 waits at W(micro-batch 0, chunk 0) for its own B(micro-batch 0, chunk "
      "0); to break the circle, run a slot that is waited for before the slot at which its stage waits\n");
}

// Stage 0 only suffers from the circle of stages 1 and 2 and is not part of it.
TEST(ScheduleCheck, LeavesStagesOutsideTheCycleOut) {
  EXPECT_EQ(
      messages(written(1, 2, {"F0 F1 B0 B1", "F0 B0 F1 B1", "F0 F1 B0 B1"})),
      "the schedule deadlocks: stage 1 waits at B(micro-batch 0, chunk 0) for B(micro-batch 0, chunk 0) on "
      "stage 2, which waits at F(micro-batch 1, chunk 0) for F(micro-batch 1, chunk 0) on stage 1; to break "
      "the circle, run a slot that is waited for before the slot at which its stage waits\n");
}

// Chunks tie a pipeline's end to its start: stage 0's second chunk waits for stage 1's first.
TEST(ScheduleCheck, FindsCyclesThroughChunks) {
  EXPECT_EQ(
      messages(written(2, 1, {"F0.0 F0.1 B0.1 B0.0", "F0.1 F0.0 B0.1 B0.0"})),
      "the schedule deadlocks: stage 0 waits at F(micro-batch 0, chunk 1) for F(micro-batch 0, chunk 0) on "
      "stage 1, which waits at F(micro-batch 0, chunk 1) for F(micro-batch 0, chunk 1) on stage 0; to break "
      "the circle, run a slot that is waited for before the slot at which its stage waits\n");
}

// 2 * 512 * 3 slots on each of 64 stages. The limit is far above what a linear check takes, and far below
// what one that looks at all stages after every slot would.
TEST(ScheduleCheck, IsLinearInSlots) {
  const Schedule schedule = interleaved(64, 3, 512);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(check(schedule).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

}  // namespace
}  // namespace trainsim::schedule
