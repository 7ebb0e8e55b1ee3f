// SPDX-License-Identifier: Apache-2.0
// Micro-batches that recompute less than others. The model has 8 layers, h = 512, a = 8, s = 256, V = 8192,
// one sequence per micro-batch.
#include "sim/lowering/checkpointing.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using plan::Recompute;
using plan::RecomputeGranularity;
using plan::RecomputeMethod;
using program::Instruction;
using program::MemoryCategory;
using program::Opcode;
using program::Program;
using program::Stream;
using tests::gpt;
using tests::split_plan;

constexpr std::int64_t kSbh = 256 * 512;
/// s b h (34 + 5 a s / h) of a layer that keeps all, s b h 34 without what the attention core keeps, and its
/// input in 2 bytes.
constexpr Bytes kWhole = kSbh * 54;
constexpr Bytes kSelective = kSbh * 34;
constexpr Bytes kInput = kSbh * 2;
/// Dropout mask of the embedding's output.
constexpr Bytes kMask = kSbh;
/// Inputs that the head keeps.
constexpr Bytes kHead = kSbh * 4;
/// 24 b s h^2 (1 + s / 6h) = 1,610,612,736 * 13 / 12, of which the attention core does 4 b s^2 h.
constexpr Flops kLayerForward = 1'744'830'464.0;
constexpr Flops kCore = 134'217'728.0;

Recompute full(std::int64_t partial, std::int64_t layers = 0) {
  Recompute recompute{RecomputeGranularity::kFull};
  recompute.partial_micro_batches = partial;
  recompute.partial_layers = layers;
  return recompute;
}

ParallelPlan plan_with(const Recompute& recompute, const tests::Split& split, std::int64_t micro_batches) {
  ParallelPlan plan = split_plan(split, micro_batches);
  plan.recompute = recompute;
  return plan;
}

Bytes largest(const Program& program, MemoryCategory category) {
  return tests::of(memory::replay(program).largest, category);
}

/// Micro-batch and chunk of the slots that bring something back.
std::set<std::pair<int, int>> recomputed_passes(const Program& program) {
  std::set<std::pair<int, int>> passes;
  std::pair<int, int> slot;
  for (const Instruction& instruction : program.stream(Stream::kCompute)) {
    if (instruction.op == Opcode::kSlotBegin)
      slot = {program.slots[instruction.id].micro_batch, program.slots[instruction.id].chunk};
    if (instruction.op == Opcode::kAllocate && instruction.memory == MemoryCategory::kRecomputation)
      passes.insert(slot);
  }
  return passes;
}

/// Stages 0 to 3 have 4, 3, 2 and 1 micro-batches in flight, of which two keep everything.
TEST(PartialRecomputation, KeepsSomeOfTheMicroBatchesInFlightWhole) {
  const std::vector<Program> stages = tests::programs_of(gpt({8}), plan_with(full(2), {1, 4, 1, 1}, 8));
  const auto activations = [&](std::size_t stage) {
    return largest(stages[stage], MemoryCategory::kActivations);
  };
  EXPECT_EQ(activations(0), 2 * (2 * kWhole + 2 * kInput) + 4 * kMask);
  EXPECT_EQ(activations(1), 2 * 2 * kWhole + 2 * kInput);
  EXPECT_EQ(activations(2), 2 * 2 * kWhole);
  EXPECT_EQ(activations(3), 2 * kWhole + kHead);
  EXPECT_EQ(largest(stages[0], MemoryCategory::kRecomputation), kWhole - kInput);
  EXPECT_EQ(largest(stages[2], MemoryCategory::kRecomputation), 0);
}

/// Number k runs again if k mod 4, k mod 3, … is 2 or more: 2, 3, 6 and 7; 2 and 5; none; none.
TEST(PartialRecomputation, RunsTheOthersAgain) {
  const std::vector<Program> stages = tests::programs_of(gpt({8}), plan_with(full(2), {1, 4, 1, 1}, 8));
  using Passes = std::set<std::pair<int, int>>;
  EXPECT_EQ(recomputed_passes(stages[0]), (Passes{{2, 0}, {3, 0}, {6, 0}, {7, 0}}));
  EXPECT_EQ(recomputed_passes(stages[1]), (Passes{{2, 0}, {5, 0}}));
  EXPECT_EQ(recomputed_passes(stages[2]), Passes{});
  EXPECT_EQ(recomputed_passes(stages[3]), Passes{});
  EXPECT_DOUBLE_EQ(stages[0].recomputed_flops, 4 * 2 * kLayerForward);
  EXPECT_DOUBLE_EQ(stages[1].recomputed_flops, 2 * 2 * kLayerForward);
  EXPECT_EQ(stages[2].recomputed_flops, 0);
}

TEST(PartialRecomputation, TakesTheTimeOfTheOthers) {
  const auto recomputing = [](std::int64_t partial) {
    return tests::run_free(gpt({8}), plan_with(full(partial), {1, 4, 1, 1}, 8));
  };
  const program::Timeline all = recomputing(0);
  const program::Timeline some = recomputing(2);
  const double shares[] = {4.0 / 8, 2.0 / 8, 0, 0};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const Seconds whole = tests::of(all.ranks[stage], program::Cause::kRecompute);
    EXPECT_NEAR(tests::of(some.ranks[stage], program::Cause::kRecompute), shares[stage] * whole, 1e-12);
  }
  EXPECT_LT(some.step_time, all.step_time);
}

/// With p = v = 2 stage 0 warms up with (2 - 0 - 1) 2 + (2 - 1) 2 = 4 passes, and has 5 in flight; stage 1
/// has
/// 3. In the order 0.0 1.0 0.1 1.1 2.0 3.0 2.1 3.1 (micro-batch, chunk) numbers 3 and 4 are not among the
/// first three of five.
TEST(PartialRecomputation, CountsPassesOfChunks) {
  const std::vector<Program> stages = tests::programs_of(gpt({8}), plan_with(full(3), {1, 2, 2, 1}, 4));
  EXPECT_EQ(recomputed_passes(stages[0]), (std::set<std::pair<int, int>>{{1, 1}, {2, 0}}));
  EXPECT_EQ(recomputed_passes(stages[1]), (std::set<std::pair<int, int>>{}));
}

/// Two in flight on stage 0, which has 4 layers: every other micro-batch recomputes one of them, the rest
/// all.
TEST(PartialRecomputation, MayRecomputeSomeLayers) {
  const Program stage = tests::programs_of(gpt({8}), plan_with(full(1, 1), {1, 2, 1, 1}, 4)).front();
  EXPECT_EQ(largest(stage, MemoryCategory::kActivations), kInput + 3 * kWhole + 4 * kInput + 2 * kMask);
  EXPECT_DOUBLE_EQ(stage.recomputed_flops, (2 * 1 + 2 * 4) * kLayerForward);
}

/// The same with attention cores: what Korthikanti et al. did.
TEST(PartialRecomputation, LeavesOutSelectiveRecomputation) {
  Recompute recompute{RecomputeGranularity::kSelective};
  recompute.partial_micro_batches = 1;
  const auto program_with = [&](std::int64_t layers) {
    recompute.partial_layers = layers;
    return tests::programs_of(gpt({8}), plan_with(recompute, {1, 2, 1, 1}, 4)).front();
  };
  const Program none = program_with(0);
  EXPECT_EQ(largest(none, MemoryCategory::kActivations), 4 * kWhole + 4 * kSelective + 2 * kMask);
  EXPECT_DOUBLE_EQ(none.recomputed_flops, 2 * 4 * kCore);
  const Program some = program_with(3);
  EXPECT_EQ(largest(some, MemoryCategory::kActivations), kWhole + 7 * kSelective + 2 * kMask);
  EXPECT_DOUBLE_EQ(some.recomputed_flops, (2 * 3 + 2 * 4) * kCore);
}

/// More of them than a stage ever has in flight is no recomputation.
TEST(PartialRecomputation, OfAllMicroBatchesIsNone) {
  for (const auto schedule : {plan::ScheduleKind::kOneFOneB, plan::ScheduleKind::kGpipe}) {
    ParallelPlan plan = plan_with(full(8), {1, 4, 1, 1}, 8);
    plan.schedule = schedule;
    const std::vector<Program> partial = tests::programs_of(gpt({8}), plan);
    plan.recompute = {};
    const std::vector<Program> none = tests::programs_of(gpt({8}), plan);
    for (std::size_t stage = 0; stage < none.size(); ++stage) {
      EXPECT_EQ(memory::replay(partial[stage]).peak, memory::replay(none[stage]).peak);
      EXPECT_EQ(partial[stage].recomputed_flops, 0);
    }
  }
}

}  // namespace
}  // namespace trainsim::lowering
