// SPDX-License-Identifier: Apache-2.0
// Weight gradients in slots of their own: what a stage computes, when, and what it holds meanwhile.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using plan::ScheduleKind;
using program::Program;
using program::Stream;
using tests::gpt;
using tests::split_plan;

constexpr ScheduleKind kBoth[] = {ScheduleKind::kZeroBubbleH1, ScheduleKind::kZeroBubbleH2};

ParallelPlan zero_bubble(ScheduleKind schedule, const tests::Split& split, std::int64_t micro_batches) {
  ParallelPlan plan = split_plan(split, micro_batches);
  plan.schedule = schedule;
  return plan;
}

TEST(ZeroBubble, ComputesWhat1F1BDoes) {
  for (const tests::Split& split : {tests::Split{1, 4, 1, 1}, tests::Split{2, 2, 1, 1}}) {
    for (const bool sequence : {false, true}) {
      ParallelPlan plan = split_plan(split, 6);
      plan.sequence_parallel = sequence && split.tensor > 1;
      const std::vector<Program> expected = tests::programs_of(gpt({8}), plan);
      for (const ScheduleKind schedule : kBoth) {
        plan.schedule = schedule;
        const std::vector<Program> programs = tests::programs_of(gpt({8}), plan);
        ASSERT_EQ(programs.size(), expected.size());
        for (std::size_t stage = 0; stage < programs.size(); ++stage)
          EXPECT_DOUBLE_EQ(programs[stage].flops, expected[stage].flops);
      }
    }
  }
}

/// 8 micro-batches of 10 ms each forward, for inputs and for weights, on 4 stages: 240 ms, and 3 times 10 ms.
TEST(ZeroBubble, TakesItsClosedForm) {
  for (const ScheduleKind schedule : kBoth) {
    ParallelPlan plan = zero_bubble(schedule, {1, 4, 1, 1}, 8);
    plan.profile = {{0.010, 0.020, 0.010}};
    const program::Timeline timeline = tests::run_free(gpt({8}), plan);
    Seconds first = 1e9;
    Seconds last = 0;
    for (const program::RankTimeline& rank : timeline.ranks) {
      first = std::min(first, rank.first_slot);
      last = std::max(last, rank.last_slot);
      // H2's stages work without a pause.
      if (schedule == ScheduleKind::kZeroBubbleH2) {
        EXPECT_NEAR(rank.last_slot - rank.first_slot, 0.240, 1e-9);
      }
    }
    EXPECT_NEAR(last - first, 0.270, 1e-9);
  }
}

/// Cases C23: what is put off must be bounded.
TEST(ZeroBubble, C23_MemoryDoesNotGrowWithTheMicroBatches) {
  for (const ScheduleKind schedule : kBoth) {
    const auto peaks = [schedule](std::int64_t micro_batches) {
      std::vector<Bytes> bytes;
      for (const memory::Profile& stage :
           tests::memory_of(gpt({8}), zero_bubble(schedule, {1, 4, 1, 1}, micro_batches)))
        bytes.push_back(stage.peak);
      return bytes;
    };
    EXPECT_EQ(peaks(8), peaks(32));
  }
}

/// Bytes that the compute stream has allocated and not freed by the slot of a kind and micro-batch.
Bytes held_before(const Program& program, char kind, std::int32_t micro_batch) {
  Bytes held = 0;
  for (const program::Instruction& each : program.stream(Stream::kCompute)) {
    if (each.op == program::Opcode::kAllocate) held += static_cast<Bytes>(each.amount);
    if (each.op == program::Opcode::kFree) held -= static_cast<Bytes>(each.amount);
    if (each.op != program::Opcode::kSlotBegin) continue;
    const program::SlotInfo& slot = program.slots[each.id];
    if (slot.kind == kind && slot.micro_batch == micro_batch) return held;
  }
  ADD_FAILURE() << "no such slot";
  return 0;
}

/// The last of four stages puts the weights of three micro-batches off: 32 s b h of each of its two layers
/// (Qi et al. 2023, table 1), and in the head the input of the output projection, 2 s b h, and the gradient
/// of the logits, 2 s b V.
TEST(ZeroBubble, HoldsWhatWeightGradientsNeed) {
  const Program last =
      tests::programs_of(gpt({8}), zero_bubble(ScheduleKind::kZeroBubbleH1, {1, 4, 1, 1}, 3)).back();
  constexpr Bytes kSbh = 256 * 512;
  const Bytes put_off = 2 * 32 * kSbh + 2 * kSbh + 2 * 256 * 8192;
  const Bytes state = held_before(last, 'F', 0);
  EXPECT_EQ(held_before(last, 'F', 1) - state, put_off);
  EXPECT_EQ(held_before(last, 'W', 0) - state, 3 * put_off);
  EXPECT_EQ(held_before(last, 'W', 2) - state, put_off);
}

}  // namespace
}  // namespace trainsim::lowering
