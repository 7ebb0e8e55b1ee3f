// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: sizes, passes, memory and state by hand. h = 512, s = 256, b = 1: T = 256 tokens; 8
// experts of width f = 1024, k = 2.
#include "sim/lowering/experts.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/lowering/layer.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "sim/lowering/state.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using model::LayerKind;
using program::Cause;
using program::CollectiveOp;
using program::GroupKind;
using program::MemoryCategory;
using program::Stream;
using tests::collectives;
using tests::gpt;
using tests::memory_of;
using tests::of;
using tests::programs_of;
using tests::split_plan;

constexpr std::int64_t kTokens = 256;
constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kWidth = 1024;
constexpr std::int64_t kExperts = 8;
/// Weights of an expert: h f and f h.
constexpr std::int64_t kExpert = 2 * kHidden * kWidth;
/// Attention 4 h^2, two norms of 2 h, and a router of h for each expert.
constexpr std::int64_t kShared = 4 * kHidden * kHidden + 4 * kHidden + kHidden * kExperts;

model::ModelSpec experts_of(std::int64_t layers) {
  model::ModelSpec model = gpt({layers});
  model.dropout = 0;
  model.linear_bias = false;
  model.attention = model::Attention::kFlash;
  model.experts.count = kExperts;
  model.experts.per_token = 2;
  model.experts.intermediate_size = kWidth;
  return model;
}

plan::ParallelPlan spread(const tests::Split& split, std::int64_t experts) {
  plan::ParallelPlan plan = split_plan(split);
  plan.expert_parallel = experts;
  plan.sequence_parallel = split.tensor > 1;
  return plan;
}

TEST(ExpertShapes, CountCopiesOfTokens) {
  const ExpertShapes shapes(experts_of(1), spread({1, 1, 1, 4}, 4));
  EXPECT_EQ(shapes.tokens, kTokens);
  EXPECT_EQ(shapes.copies, 2 * kTokens);
  // Four ranks send a quarter of theirs each.
  EXPECT_EQ(shapes.received, 2 * kTokens);
  EXPECT_EQ(shapes.local, 2);
  EXPECT_EQ(shapes.per_expert, kTokens);
}

TEST(ExpertShapes, RanksThatShareAnExpertWorkOnTheTokensOfAll) {
  plan::ParallelPlan plan = spread({2, 1, 1, 4}, 4);
  // Each of two ranks routes half of the sequence; with halves of the experts they gather both halves.
  const ExpertShapes split(experts_of(1), plan);
  EXPECT_EQ(split.copies, kTokens);
  EXPECT_EQ(split.received, 2 * kTokens);
  EXPECT_EQ(split.ffn, kWidth / 2);
  plan.expert_tensor_parallel = 1;
  const ExpertShapes whole(experts_of(1), plan);
  EXPECT_EQ(whole.received, kTokens);
  EXPECT_EQ(whole.ffn, kWidth);
}

TEST(ExpertShapes, TheFullestRankHasItsShareOfImbalanceUpToTheCapacity) {
  model::ModelSpec model = experts_of(1);
  const plan::ParallelPlan plan = spread({1, 1, 1, 4}, 4);
  model.experts.imbalance = 1.5;
  EXPECT_EQ(ExpertShapes(model, plan).received, 768);  // 512 * 1.5
  EXPECT_EQ(ExpertShapes(model, plan).copies, 512);
  model.experts.capacity_factor = 1.25;
  EXPECT_EQ(ExpertShapes(model, plan).received, 640);  // 512 * 1.25
  // Half of all copies are dropped, and no expert gets more than another.
  model.experts.capacity_factor = 0.5;
  EXPECT_EQ(ExpertShapes(model, plan).copies, 256);
  EXPECT_EQ(ExpertShapes(model, plan).received, 256);
  // A rank with all experts has all tokens that it routes, no more.
  model.experts.capacity_factor = 0;
  EXPECT_EQ(ExpertShapes(model, spread({1, 1, 1, 4}, 1)).received, 512);
}

TEST(ExpertParameters, AreThoseOfTheRanksExperts) {
  const model::ModelSpec model = experts_of(2);
  const auto layer = [&model](const plan::ParallelPlan& plan) {
    return layer_parameters_per_rank(model, plan, LayerKind::kExpert);
  };
  EXPECT_EQ(layer(spread({1, 1, 1, 8}, 1)), kShared + 8 * kExpert);
  EXPECT_EQ(layer(spread({1, 1, 1, 8}, 4)), kShared + 2 * kExpert);
  // With two tensor-parallel ranks a rank has half of the attention, all of norms and router, and halves of
  // experts unless these stay whole.
  const std::int64_t half = 2 * kHidden * kHidden + 4 * kHidden + kHidden * kExperts;
  plan::ParallelPlan plan = spread({2, 1, 1, 4}, 4);
  EXPECT_EQ(layer(plan), half + 2 * kExpert / 2);
  plan.expert_tensor_parallel = 1;
  EXPECT_EQ(layer(plan), half + 2 * kExpert);
}

TEST(ExpertParameters, SharedExpertsAreSplitByTensorParallelismAlone) {
  model::ModelSpec model = experts_of(1);
  model.experts.shared_intermediate_size = 256;
  const std::int64_t shared = 2 * kHidden * 256;
  EXPECT_EQ(layer_parameters_per_rank(model, spread({1, 1, 1, 8}, 8), LayerKind::kExpert),
            kShared + shared + kExpert);
}

TEST(ExpertParameters, ACheckpointHoldsAllExpertsHoweverTheyAreSpread) {
  model::ModelSpec model = experts_of(4);
  model.vocab_size = 512;  // is padded alike for every degree
  const plan::ParallelPlan alone = spread({1, 1, 1, 1}, 1);
  // Adam in mixed precision: fp32 and 2-byte parameters, two moments.
  const Bytes bytes = checkpoint_bytes(model, alone);
  EXPECT_EQ(bytes, 14 * stage_parameters(model, alone, 0));
  for (const std::int64_t experts : {2, 4, 8})
    EXPECT_EQ(checkpoint_bytes(model, spread({1, 1, 1, 8}, experts)), bytes);
  plan::ParallelPlan plan = spread({2, 2, 1, 4}, 4);
  EXPECT_EQ(checkpoint_bytes(model, plan), bytes);
  plan.expert_tensor_parallel = 1;
  EXPECT_EQ(checkpoint_bytes(model, plan), bytes);
}

TEST(ExpertPasses, ExchangeTokensTwiceInEachDirection) {
  const std::vector<program::Program> programs = programs_of(experts_of(3), spread({1, 1, 1, 8}, 8));
  const auto exchanges = collectives(programs[0], Stream::kCompute, GroupKind::kExpert);
  // Dispatch and combine, forward and backward, in each of three layers.
  ASSERT_EQ(exchanges.size(), 12U);
  for (const program::Instruction& exchange : exchanges) {
    EXPECT_EQ(exchange.collective, CollectiveOp::kAllToAll);
    EXPECT_EQ(exchange.cause, Cause::kExpertCommunication);
    EXPECT_EQ(exchange.amount, 2 * kTokens * kHidden * 2);  // k T h elements of 2 bytes
  }
}

TEST(ExpertPasses, DenseLayersExchangeNothing) {
  model::ModelSpec model = experts_of(6);
  const plan::ParallelPlan plan = spread({1, 1, 1, 8}, 8);
  const auto exchanges = [&] {
    return collectives(programs_of(model, plan)[0], Stream::kCompute, GroupKind::kExpert).size();
  };
  model.experts.dense_layers = 1;
  EXPECT_EQ(exchanges(), 4U * 5);
  model.experts.layer_interval = 2;  // layers 2 and 4
  EXPECT_EQ(exchanges(), 4U * 2);
  model.experts.dense_layers = 0;  // 0 as well
  EXPECT_EQ(exchanges(), 4U * 3);
}

TEST(ExpertPasses, FullRecomputationExchangesAgain) {
  plan::ParallelPlan plan = spread({1, 1, 1, 8}, 8);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  EXPECT_EQ(collectives(programs_of(experts_of(1), plan)[0], Stream::kCompute, GroupKind::kExpert).size(),
            6U);
  plan.recompute.granularity = plan::RecomputeGranularity::kSelective;
  EXPECT_EQ(collectives(programs_of(experts_of(1), plan)[0], Stream::kCompute, GroupKind::kExpert).size(),
            4U);
  plan.recompute.modules.experts = true;
  EXPECT_EQ(collectives(programs_of(experts_of(1), plan)[0], Stream::kCompute, GroupKind::kExpert).size(),
            6U);
}

TEST(ExpertPasses, RanksThatShareExpertsGatherTokensAndScatterResults) {
  plan::ParallelPlan plan = spread({2, 1, 1, 4}, 4);
  plan.overlap_tensor_communication = false;
  model::ModelSpec model = experts_of(1);
  const auto of_tokens = [&](CollectiveOp op) {
    const auto all = collectives(programs_of(model, plan)[0], Stream::kCompute, GroupKind::kTensor);
    // 512 copies: those of both ranks; the residual stream has 256 rows.
    return std::count_if(all.begin(), all.end(), [op](const program::Instruction& collective) {
      return collective.collective == op && collective.amount == 512 * kHidden * 2;
    });
  };
  EXPECT_EQ(of_tokens(CollectiveOp::kAllGather), 2);
  EXPECT_EQ(of_tokens(CollectiveOp::kReduceScatter), 2);
  plan.expert_tensor_parallel = 1;
  EXPECT_EQ(of_tokens(CollectiveOp::kAllGather), 0);
  EXPECT_EQ(of_tokens(CollectiveOp::kReduceScatter), 0);
}

TEST(ExpertPasses, MultiplyTokensOfVisitedExpertsOnly) {
  model::ModelSpec model = experts_of(1);
  const auto flops = [&](std::int64_t experts) {
    return programs_of(model, spread({1, 1, 1, 8}, experts))[0].flops;
  };
  // 2 T (4 h^2 + h E + k 2 h f) three times, attention 4 T s h three times, logits 6 T h V.
  const double layer = 2.0 * kTokens * (4.0 * kHidden * kHidden + kHidden * kExperts + 2.0 * kExpert);
  const double expected = 3 * (layer + 4.0 * kTokens * 256 * kHidden) + 6.0 * kTokens * kHidden * 8192;
  EXPECT_DOUBLE_EQ(flops(1), expected);
  EXPECT_DOUBLE_EQ(flops(8), expected);
  EXPECT_DOUBLE_EQ(model::model_flops(model, 1), expected);
  // The fullest rank's additional tokens are others' missing ones.
  model.experts.imbalance = 2;
  EXPECT_DOUBLE_EQ(flops(8), expected);
}

TEST(ExpertGradients, AreReducedOverTheRanksWithTheSameExperts) {
  plan::ParallelPlan plan = spread({1, 1, 1, 8}, 4);
  plan.overlap_gradient_reduction = false;
  const std::vector<program::Program> programs = programs_of(experts_of(1), plan);
  const auto dense = collectives(programs[0], Stream::kCompute, GroupKind::kData);
  const auto routed = collectives(programs[0], Stream::kCompute, GroupKind::kExpertData);
  ASSERT_EQ(dense.size(), 1U);
  ASSERT_EQ(routed.size(), 1U);
  EXPECT_EQ(routed[0].collective, CollectiveOp::kAllReduce);
  EXPECT_EQ(routed[0].amount, 4 * 2 * kExpert);
  // Tables of 8192 words and 256 positions, and the final norm's 2 h.
  EXPECT_EQ(dense[0].amount, 4 * (kShared + (8192 + 256) * kHidden + 2 * kHidden));
}

TEST(ExpertGradients, OfASingleCopyNeedNoReduction) {
  plan::ParallelPlan plan = spread({1, 1, 1, 8}, 8);
  plan.sharding = plan::Sharding::kZero1;
  for (const bool overlap : {false, true}) {
    plan.overlap_gradient_reduction = overlap;
    const std::vector<program::Program> programs = programs_of(experts_of(2), plan);
    EXPECT_TRUE(collectives(programs[0], Stream::kCompute, GroupKind::kExpertData).empty());
    EXPECT_TRUE(collectives(programs[0], Stream::kData, GroupKind::kExpertData).empty());
  }
}

TEST(ExpertGradients, WithoutSpreadExpertsAreThoseOfTheDataGroup) {
  plan::ParallelPlan plan = spread({1, 1, 1, 8}, 1);
  plan.overlap_gradient_reduction = false;
  const auto all = collectives(programs_of(experts_of(1), plan)[0], Stream::kCompute, GroupKind::kData);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].amount, 4 * 8 * kExpert);
}

TEST(ExpertGradients, FillBucketsOfTheirOwn) {
  plan::ParallelPlan plan = spread({1, 1, 1, 8}, 4);
  plan.bucket_parameters = 3 * kExpert;
  // Two experts of each of four layers: a bucket is full after two layers.
  const auto routed = collectives(programs_of(experts_of(4), plan)[0], Stream::kData, GroupKind::kExpertData);
  ASSERT_EQ(routed.size(), 2U);
  EXPECT_EQ(routed[0].amount, 4 * 4 * kExpert);
  EXPECT_EQ(routed[1].amount, 4 * 4 * kExpert);
}

/// Attention and norms 16 sbh: norm inputs 4, inputs of qkv and MLP 4, queries, keys and values 6, input of
/// the projection 2; 4 bytes per row and head of flash attention. Then for each of N = k T copies: the
/// experts' input 2 h, the activation's input and output 2 f each, a number and a probability of 12 bytes;
/// for each score of the router 4 bytes of softmax and 1 of the map.
constexpr std::int64_t kAttentionKept = 16 * kTokens * kHidden + 4 * 8 * kTokens;
constexpr std::int64_t kCopies = 2 * kTokens;
constexpr std::int64_t kExpertsKept = kCopies * (2 * kHidden + 4 * kWidth + 12) + 5 * kTokens * kExperts;

TEST(ExpertMemory, WhatALayerKeeps) {
  EXPECT_EQ(layer_tape(experts_of(1), spread({1, 1, 1, 8}, 8), LayerKind::kExpert).kept(),
            kAttentionKept + kExpertsKept);
}

TEST(ExpertMemory, SharedExpertsKeepWhatAnMlpDoes) {
  model::ModelSpec model = experts_of(1);
  model.experts.shared_intermediate_size = 256;
  EXPECT_EQ(layer_tape(model, spread({1, 1, 1, 8}, 8), LayerKind::kExpert).kept(),
            kAttentionKept + kExpertsKept + 4 * 256 * kTokens);
}

TEST(ExpertMemory, RecomputedExpertsKeepTheirInputOnly) {
  plan::ParallelPlan plan = spread({1, 1, 1, 8}, 8);
  plan.recompute.granularity = plan::RecomputeGranularity::kSelective;
  plan.recompute.modules = {false, false, false, false, true};
  EXPECT_EQ(layer_tape(experts_of(1), plan, LayerKind::kExpert).kept(), kAttentionKept);
  // The activation's output alone.
  plan.recompute.modules = {false, false, false, true, false};
  EXPECT_EQ(layer_tape(experts_of(1), plan, LayerKind::kExpert).kept(),
            kAttentionKept + kExpertsKept - kCopies * 2 * kWidth);
}

TEST(ExpertMemory, DroppedTokensAreNotKept) {
  model::ModelSpec model = experts_of(1);
  model.experts.capacity_factor = 0.5;
  EXPECT_EQ(layer_tape(model, spread({1, 1, 1, 8}, 8), LayerKind::kExpert).kept(),
            kAttentionKept + (kExpertsKept - 5 * kTokens * kExperts) / 2 + 5 * kTokens * kExperts);
}

TEST(ExpertMemory, TokensOnTheirWayAreDispatchBuffers) {
  // At once: what is sent and what arrives.
  const memory::Profile memory = memory_of(experts_of(1), spread({1, 1, 1, 8}, 8))[0];
  EXPECT_GE(of(memory.largest, MemoryCategory::kDispatchBuffers), kCopies * kHidden * 2);
  EXPECT_EQ(of(memory_of(gpt({1}), split_plan({1, 1, 1, 8}))[0].largest, MemoryCategory::kDispatchBuffers),
            0);
}

TEST(ExpertMemory, EverythingIsFreedAtTheEnd) {
  for (const std::int64_t experts : {1, 2, 8}) {
    const memory::Profile memory = memory_of(experts_of(2), spread({1, 1, 1, 8}, experts))[0];
    for (const MemoryCategory category : {MemoryCategory::kActivations, MemoryCategory::kDispatchBuffers,
                                          MemoryCategory::kRecomputation, MemoryCategory::kTemporary})
      EXPECT_EQ(of(memory.at_end, category), 0) << program::to_string(category);
  }
}

/// NVIDIA/Megatron-LM pull request 6782, issue 1784: expert parallelism must not divide activations.
TEST(ExpertCases, G08_ActivationsDoNotDependOnExpertParallelism) {
  const auto activations = [](std::int64_t experts) {
    const memory::Profile memory = memory_of(experts_of(4), spread({1, 1, 1, 8}, experts))[0];
    return static_cast<double>(of(memory.largest, MemoryCategory::kActivations));
  };
  EXPECT_NEAR(activations(8) / activations(1), 1.0, 0.1);
}

TEST(ExpertState, IsDividedByExpertParallelismAndShardedOverItsOwnRanks) {
  plan::ParallelPlan plan = spread({1, 1, 1, 8}, 4);
  plan.sharding = plan::Sharding::kZero1;
  const model::ModelSpec model = experts_of(1);
  const std::int64_t dense = kShared + (8192 + 256) * kHidden + 2 * kHidden;
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  for (const StateTensor& tensor : state_tensors(model, plan, 0)) {
    if (tensor.category == MemoryCategory::kParameters) parameters += tensor.bytes;
    if (tensor.category == MemoryCategory::kMainGradients) gradients += tensor.bytes;
    if (tensor.category == MemoryCategory::kOptimizerState) optimizer += tensor.bytes;
  }
  // Two of eight experts on a rank, and two ranks with the same.
  EXPECT_EQ(parameters, 2 * (dense + 2 * kExpert));
  EXPECT_EQ(gradients, 4 * (dense + 2 * kExpert));
  EXPECT_EQ(optimizer, 12 * (dense / 8 + 2 * kExpert / 2));
}

TEST(ExpertState, OfStagesFollowsTheirLayers) {
  model::ModelSpec model = experts_of(4);
  model.experts.dense_layers = 1;
  const plan::ParallelPlan plan = spread({1, 2, 1, 8}, 8);
  EXPECT_EQ(stage_expert_parameters(model, plan, 0), kExpert);
  EXPECT_EQ(stage_expert_parameters(model, plan, 1), 2 * kExpert);
  // Attention, norms and the MLP of a dense layer: 4 h wide.
  const std::int64_t mlp = 4 * kHidden * kHidden + 4 * kHidden + 8 * kHidden * kHidden;
  EXPECT_EQ(stage_parameters(model, plan, 0), mlp + kShared + kExpert + (8192 + 256) * kHidden);
}

/// Ranks of a node of 8, 100 GB/s each: 5 us and 1 us of latency, then 7/8 of k T h elements of 2 bytes.
TEST(ExpertTime, OfAnExchangeInsideANode) {
  const program::Job job =
      tests::make_job(experts_of(3), tests::round_cluster(), spread({1, 1, 1, 8}, 8), {true, false});
  const program::Timeline timeline = engine::make_ideal_executor()->run(job);
  const double exchange = 6e-6 + 7.0 / 8.0 * 2 * kTokens * kHidden * 2 / 100e9;
  EXPECT_NEAR(of(timeline.ranks[0], Cause::kExpertCommunication), 12 * exchange, 1e-12);
}

}  // namespace
}  // namespace trainsim::lowering
