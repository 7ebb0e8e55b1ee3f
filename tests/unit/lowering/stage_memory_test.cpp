// SPDX-License-Identifier: Apache-2.0
// Memory that a stage's program allocates and frees, and what recomputation repeats. The model has 8 layers
// unless stated, h = 512, s = 256, V = 8192, one sequence per micro-batch.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using plan::RecomputeGranularity;
using plan::RecomputeMethod;
using program::GroupKind;
using program::Instruction;
using program::MemoryCategory;
using program::Opcode;
using program::Program;
using program::Stream;
using tests::collectives;
using tests::gpt;
using tests::programs_of;
using tests::split_plan;

constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kSequence = 256;
constexpr std::int64_t kSbh = kSequence * kHidden;

// --- Memory ---

/// The most that a category ever has.
Bytes peak_of(const Program& program, MemoryCategory category) {
  return tests::of(memory::replay(program).largest, category);
}

bool is_state(std::size_t category) {
  const auto kind = static_cast<MemoryCategory>(category);
  return kind == MemoryCategory::kParameters || kind == MemoryCategory::kMainGradients ||
         kind == MemoryCategory::kOptimizerState;
}

void expect_only_state_at_the_end(const ParallelPlan& plan, const model::ModelSpec& model) {
  for (const memory::Profile& stage : tests::memory_of(model, plan)) {
    for (std::size_t category = 0; category < stage.at_end.size(); ++category) {
      if (is_state(category)) {
        EXPECT_GT(stage.at_end[category], 0);
      } else {
        EXPECT_EQ(stage.at_end[category], 0) << to_string(static_cast<MemoryCategory>(category));
      }
    }
  }
}

std::vector<plan::Recompute> recomputations() {
  return {{},
          {RecomputeGranularity::kSelective},
          {RecomputeGranularity::kFull, RecomputeMethod::kUniform, 1},
          {RecomputeGranularity::kFull, RecomputeMethod::kUniform, 3},
          {RecomputeGranularity::kFull, RecomputeMethod::kBlock, 1},
          {RecomputeGranularity::kFull, RecomputeMethod::kBlock, 2}};
}

TEST(StageMemory, IsFreedExceptForStateByTheEndOfTheStep) {
  for (const tests::Split& split :
       {tests::Split{1, 1, 1, 1}, tests::Split{2, 2, 1, 2}, tests::Split{2, 2, 2, 1}}) {
    for (const plan::Recompute& recompute : recomputations()) {
      for (const auto attention : {model::Attention::kStandard, model::Attention::kFlash}) {
        ParallelPlan plan = split_plan(split, 4);
        plan.recompute = recompute;
        plan.sequence_parallel = split.tensor > 1;
        model::ModelSpec model = gpt({16});
        model.attention = attention;
        expect_only_state_at_the_end(plan, model);
        model.dropout = 0;
        expect_only_state_at_the_end(plan, model);
      }
    }
  }
}

/// 12 h^2 + 13 h parameters in each of 8 layers, (8192 + 256) h in the embedding and 2 h in the final norm,
/// tied: with 2-byte gradients the optimizer needs a copy of 4 bytes each, of its shard only under ZeRO-1.
/// Megatron-LM's distributed optimizer has a buffer that the weights of 2 bytes are copied to: embedding and
/// head V h (and positions s h), of a layer qkv 3h^2, output h^2, MLP 4h^2 and 4h^2, and all that is small
/// (13 h of biases and norms' weights) as one.
TEST(StageMemory, MakesWeightsBeforeTheBufferOfADistributedOptimizer) {
  ParallelPlan plan = split_plan({1, 1, 1, 2});
  const model::ModelSpec model = gpt({1});
  EXPECT_TRUE(programs_of(model, plan).front().initial_weights.empty());
  plan.sharding = plan::Sharding::kZero1;
  const std::vector<Bytes> weights = programs_of(model, plan).front().initial_weights;
  const Bytes square = 2 * kHidden * kHidden;
  for (const Bytes bytes : {3 * square, square, 4 * square, 2 * 13 * kHidden})
    EXPECT_NE(std::find(weights.begin(), weights.end(), bytes), weights.end()) << bytes;
  EXPECT_EQ(std::count(weights.begin(), weights.end(), 4 * square), 2);
  EXPECT_EQ(std::accumulate(weights.begin(), weights.end(), Bytes{0}), 2 * stage_parameters(model, plan, 0));
  // Sharded weights are nowhere whole.
  for (const plan::Sharding sharding : {plan::Sharding::kZero2, plan::Sharding::kZero3}) {
    plan.sharding = sharding;
    EXPECT_TRUE(programs_of(model, plan).front().initial_weights.empty()) << to_string(sharding);
  }
  plan.sharding = plan::Sharding::kZero1;
  plan.framework = plan::Framework::kDeepSpeed;
  EXPECT_TRUE(programs_of(model, plan).front().initial_weights.empty());
}

TEST(StageMemory, HoldsFp32CopiesOfShortGradientsForTheOptimizer) {
  constexpr std::int64_t kParameters =
      8 * (12 * kHidden * kHidden + 13 * kHidden) + (8192 + 256) * kHidden + 2 * kHidden;
  ParallelPlan plan = split_plan({1, 1, 1, 2}, 4);
  const auto allocates = [&plan](Bytes bytes) {
    const std::vector<Instruction> code = programs_of(gpt({8}), plan)[0].stream(Stream::kCompute);
    return std::any_of(code.begin(), code.end(), [bytes](const Instruction& instruction) {
      return instruction.op == Opcode::kAllocate && instruction.memory == MemoryCategory::kTemporary &&
             static_cast<Bytes>(instruction.amount) == bytes;
    });
  };
  EXPECT_FALSE(allocates(4 * kParameters));
  plan.gradient_bytes = 2;
  EXPECT_TRUE(allocates(4 * kParameters));
  plan.sharding = plan::Sharding::kZero1;
  EXPECT_FALSE(allocates(4 * kParameters));
  EXPECT_TRUE(allocates(2 * kParameters));
}

// --- Recomputation; five layers on one stage without tensor parallelism, one micro-batch ---

/// s b h (34 + 5 a s / h), the layer's input 2 s b h, and what embedding (mask) and head (4 s b h) keep.
constexpr Bytes kStored = kSbh * 54;
constexpr Bytes kInput = 2 * kSbh;
constexpr Bytes kOutside = kSbh + 4 * kSbh;
/// 24 b s h^2 (1 + s / 6h) = 1,610,612,736 * 13 / 12.
constexpr Flops kLayerForward = 1'744'830'464.0;

Program recomputing_program(RecomputeMethod method, std::int64_t layers) {
  ParallelPlan plan = split_plan({});
  plan.recompute = {RecomputeGranularity::kFull, method, layers};
  return programs_of(gpt({5}), plan).front();
}

TEST(Recomputation, KeepsEveryInputWithOneLayerPerCheckpoint) {
  for (const RecomputeMethod method : {RecomputeMethod::kUniform, RecomputeMethod::kBlock}) {
    const Program program = recomputing_program(method, method == RecomputeMethod::kBlock ? 5 : 1);
    EXPECT_EQ(peak_of(program, MemoryCategory::kActivations), 5 * kInput + kOutside);
    EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), kStored - kInput);
    EXPECT_DOUBLE_EQ(program.recomputed_flops, 5 * kLayerForward);
  }
}

TEST(Recomputation, BringsBackAGroupOfLayersPerCheckpoint) {
  // Two layers per checkpoint: inputs of layers 0, 2 and 4; every layer runs again, two are there at a time.
  const Program two = recomputing_program(RecomputeMethod::kUniform, 2);
  EXPECT_EQ(peak_of(two, MemoryCategory::kActivations), 3 * kInput + kOutside);
  EXPECT_EQ(peak_of(two, MemoryCategory::kRecomputation), 2 * kStored - kInput);
  EXPECT_DOUBLE_EQ(two.recomputed_flops, 5 * kLayerForward);
  // All layers behind one checkpoint.
  const Program five = recomputing_program(RecomputeMethod::kUniform, 5);
  EXPECT_EQ(peak_of(five, MemoryCategory::kActivations), kInput + kOutside);
  EXPECT_EQ(peak_of(five, MemoryCategory::kRecomputation), 5 * kStored - kInput);
  EXPECT_DOUBLE_EQ(five.recomputed_flops, 5 * kLayerForward);
}

TEST(Recomputation, CoversTheFirstLayersOnlyWithBlocks) {
  // Two of five layers keep their inputs only and run again one by one; three keep everything.
  const Program program = recomputing_program(RecomputeMethod::kBlock, 2);
  EXPECT_EQ(peak_of(program, MemoryCategory::kActivations), 2 * kInput + 3 * kStored + kOutside);
  EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), kStored - kInput);
  EXPECT_DOUBLE_EQ(program.recomputed_flops, 2 * kLayerForward);
}

TEST(Recomputation, RunsForEveryMicroBatchAndChunk) {
  // 16 layers on 2 stages of 2 chunks, 4 micro-batches: 8 layers per stage, all of them again each time.
  ParallelPlan plan = split_plan({1, 2, 2, 1}, 4);
  plan.recompute = {RecomputeGranularity::kFull, RecomputeMethod::kUniform, 2};
  for (const Program& program : programs_of(gpt({16}), plan)) {
    EXPECT_DOUBLE_EQ(program.recomputed_flops, 4 * 8 * kLayerForward);
    EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), 2 * kStored - kInput);
  }
}

/// First of two stages, t = 2, 4 layers, 3 micro-batches: per layer 2 all-reduces forward, 2 again, 2
/// backward; and one for the embedding.
TEST(Recomputation, RepeatsTheCommunicationOfForward) {
  ParallelPlan plan = split_plan({2, 2, 1, 1}, 3);
  plan.scatter_gather_transfers = false;
  for (const bool full : {false, true}) {
    if (full) plan.recompute.granularity = RecomputeGranularity::kFull;
    const Program program = programs_of(gpt({8}), plan).front();
    const std::size_t transfers = collectives(program, Stream::kCompute, GroupKind::kTensor).size() +
                                  collectives(program, Stream::kTensor, GroupKind::kTensor).size();
    EXPECT_EQ(transfers, full ? 3U * (4 * 6 + 1) : 3U * (4 * 4 + 1));
  }
}

TEST(Recomputation, OfAttentionCoresBringsBackOneAtATime) {
  ParallelPlan plan = split_plan({});
  plan.recompute.granularity = RecomputeGranularity::kSelective;
  const Program program = programs_of(gpt({5}), plan).front();
  // 34 s b h without the core's 5 a s^2 b = 20 s b h, and its two products 4 b s^2 h.
  EXPECT_EQ(peak_of(program, MemoryCategory::kActivations), 5 * 34 * kSbh + kOutside);
  EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), 20 * kSbh);
  EXPECT_DOUBLE_EQ(program.recomputed_flops, 5 * 4.0 * kSequence * kSequence * kHidden);
}

}  // namespace
}  // namespace trainsim::lowering
