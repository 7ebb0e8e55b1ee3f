// SPDX-License-Identifier: Apache-2.0
// Adapters beside frozen weights. A GPT of 4 layers, h = 512, V = 8192, s = 256; r = 8.
#include <gtest/gtest.h>

#include "sim/lowering/layer_tape.hpp"
#include "sim/lowering/lower.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using program::MemoryCategory;
using tests::gpt;
using tests::of;
using tests::split_plan;

constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kRank = 8;
/// r (in + out): qkv (h + 3h), attention output (h + h), MLP (h + 4h) twice.
constexpr std::int64_t kAttention = kRank * (4 + 2) * kHidden;
constexpr std::int64_t kMlp = kRank * (5 + 5) * kHidden;

ParallelPlan lora_plan(const tests::Split& split = {}) {
  ParallelPlan plan = split_plan(split);
  plan.lora.rank = kRank;
  return plan;
}

TEST(Lora, TrainsTheAdaptersOnly) {
  const ParallelPlan plan = lora_plan();
  EXPECT_EQ(trained_layer_parameters_per_rank(gpt({4}), plan), kAttention + kMlp);
  EXPECT_EQ(trained_stage_parameters(gpt({4}), plan, 0), 4 * (kAttention + kMlp));
  EXPECT_EQ(stage_parameters(gpt({4}), plan, 0),
            stage_parameters(gpt({4}), split_plan({}), 0) + 4 * (kAttention + kMlp));
  ParallelPlan attention = plan;
  attention.lora.mlp = false;
  EXPECT_EQ(trained_layer_parameters_per_rank(gpt({4}), attention), kAttention);
}

/// Queries, keys and values have an adapter each where they are layers of their own: r (h + h) three times.
TEST(Lora, TrainsAnAdapterOfEachLayer) {
  ParallelPlan plan = lora_plan();
  plan.fused_linears.qkv = false;
  const std::int64_t more = kRank * 2 * kHidden;
  EXPECT_EQ(trained_layer_parameters_per_rank(gpt({4}), plan), kAttention + kMlp + more);
  EXPECT_EQ(trained_stage_parameters(gpt({4}), plan, 0), 4 * (kAttention + kMlp + more));
  const Bytes inputs = 2 * 2 * kRank * 256;
  EXPECT_EQ(layer_tape(gpt({4}), plan).kept(), layer_tape(gpt({4}), lora_plan()).kept() + inputs);
}

/// 2 bytes for every parameter, 4 + 12 for each that is trained.
TEST(Lora, KeepsGradientsAndOptimizerOfAdaptersOnly) {
  const ParallelPlan plan = lora_plan();
  const program::MemoryByCategory state = tests::memory_of(gpt({4}), plan).front().at_end;
  const std::int64_t trained = 4 * (kAttention + kMlp);
  EXPECT_EQ(of(state, MemoryCategory::kParameters), 2 * stage_parameters(gpt({4}), plan, 0));
  EXPECT_EQ(of(state, MemoryCategory::kMainGradients), 4 * trained);
  EXPECT_EQ(of(state, MemoryCategory::kOptimizerState), 12 * trained);
}

/// Without an adapter a frozen layer needs no input for a gradient: of 34 s b h the inputs of qkv, attention
/// output and both of the MLP go, 2 + 2 + 2 + 8, less what others keep: the attention output stays with flash
/// attention only, and the activation's input stays.
TEST(Lora, KeepsNoInputsOfFrozenWeights) {
  ParallelPlan plan = lora_plan();
  plan.lora.attention = plan.lora.mlp = false;
  constexpr std::int64_t kSbh = 256 * kHidden;
  constexpr std::int64_t kAss = 8 * 256 * 256;
  EXPECT_EQ(layer_tape(gpt({4}), plan).kept(), (34 - 2 - 2 - 2 - 8) * kSbh + 5 * kAss);
  // With adapters all inputs are kept, and what comes out of each first matrix: 4 r values per token.
  EXPECT_EQ(layer_tape(gpt({4}), lora_plan()).kept(), 34 * kSbh + 5 * kAss + 4 * 2 * kRank * 256);
}

TEST(Lora, SavesTheWeightGradients) {
  const double full = tests::programs_of(gpt({4}), split_plan({})).front().flops;
  ParallelPlan frozen = lora_plan();
  frozen.lora.attention = frozen.lora.mlp = false;
  // 24 s b h^2 of each layer and 2 s b h V of the head, once of three times.
  const double saved = 4 * 24.0 * 256 * kHidden * kHidden + 2.0 * 256 * kHidden * 8192;
  EXPECT_DOUBLE_EQ(tests::programs_of(gpt({4}), frozen).front().flops, full - saved);
}

TEST(Lora, ReducesAdaptersGradientsOnly) {
  double bytes = 0;
  for (const program::Program& program : tests::programs_of(gpt({4}), lora_plan({1, 1, 1, 4}))) {
    for (const auto stream : {program::Stream::kCompute, program::Stream::kData}) {
      for (const program::Instruction& each : tests::collectives(program, stream, program::GroupKind::kData))
        bytes += each.amount;
    }
  }
  EXPECT_DOUBLE_EQ(bytes, 4.0 * 4 * (kAttention + kMlp));
}

/// With full sharding frozen weights are gathered like others; gradients are scattered of adapters.
TEST(Lora, GathersFrozenWeights) {
  ParallelPlan plan = lora_plan({1, 1, 1, 4});
  plan.sharding = plan::Sharding::kZero3;
  double gathered = 0;
  double scattered = 0;
  for (const program::Instruction& each : tests::collectives(
           tests::programs_of(gpt({4}), plan).front(), program::Stream::kData, program::GroupKind::kData)) {
    (each.collective == program::CollectiveOp::kAllGather ? gathered : scattered) += each.amount;
  }
  const auto layer = static_cast<double>(layer_parameters_per_rank(gpt({4}), plan));
  const auto all = static_cast<double>(stage_parameters(gpt({4}), plan, 0));
  EXPECT_DOUBLE_EQ(gathered, 2.0 * (all + 4 * layer));
  EXPECT_DOUBLE_EQ(scattered, 4.0 * 4 * (kAttention + kMlp));
}

}  // namespace
}  // namespace trainsim::lowering
