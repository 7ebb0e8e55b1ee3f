// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace trainsim::plan {
namespace {

using Layers = std::vector<std::int64_t>;

Layers layers_of(std::int64_t layers, std::int64_t stages, std::int64_t chunks = 1) {
  model::ModelSpec model;
  model.num_layers = layers;
  ParallelPlan plan;
  plan.pipeline_parallel = stages;
  plan.virtual_pipeline = chunks;
  return stage_layers(plan, model);
}

TEST(StageLayers, SplitEvenlyWhenTheyCan) {
  EXPECT_EQ(layers_of(96, 8), Layers(8, 12));
  EXPECT_EQ(layers_of(96, 8, 3), Layers(24, 4));
}

TEST(StageLayers, GiveTheRemainderToTheMiddle) {
  EXPECT_EQ(layers_of(9, 4), (Layers{2, 3, 2, 2}));  // of the two in the middle the first
  EXPECT_EQ(layers_of(10, 4), (Layers{2, 3, 3, 2}));
  EXPECT_EQ(layers_of(11, 4), (Layers{3, 3, 3, 2}));
  EXPECT_EQ(layers_of(10, 3), (Layers{3, 4, 3}));
  EXPECT_EQ(layers_of(3, 2), (Layers{2, 1}));
}

TEST(StageLayers, GiveBloomItsPublishedSplit) {
  // 70 layers on 12 stages: 5 beside embedding and head, 6 on the ten in between.
  Layers expected(12, 6);
  expected.front() = expected.back() = 5;
  EXPECT_EQ(layers_of(70, 12), expected);
}

TEST(StageLayers, FollowAGivenLayout) {
  model::ModelSpec model;
  model.num_layers = 6;
  ParallelPlan plan;
  plan.pipeline_parallel = 3;
  plan.pipeline_layout = {1, 3, 2};
  EXPECT_EQ(stage_layers(plan, model), (Layers{1, 3, 2}));
}

TEST(Ranks, HaveTensorInnermostThenDataThenPipeline) {
  ParallelPlan plan;
  plan.tensor_parallel = 2;
  plan.data_parallel = 3;
  plan.pipeline_parallel = 4;
  EXPECT_EQ(rank_of(plan, {0, 0, 0}), 0);
  EXPECT_EQ(rank_of(plan, {1, 0, 0}), 1);
  EXPECT_EQ(rank_of(plan, {0, 1, 0}), 2);
  EXPECT_EQ(rank_of(plan, {0, 0, 1}), 6);
  EXPECT_EQ(rank_of(plan, {1, 2, 3}), 23);  // 1 + 2 * (2 + 3 * 3)
}

/// Megatron-LM's order is tp-cp-ep-dp-pp; others keep the two together.
TEST(Ranks, HaveContextRightAfterTensor) {
  ParallelPlan plan;
  plan.tensor_parallel = 2;
  plan.context_parallel = 4;
  plan.data_parallel = 3;
  plan.pipeline_parallel = 2;
  EXPECT_EQ(rank_of(plan, {1, 0, 0, 0}), 1);
  EXPECT_EQ(rank_of(plan, {0, 0, 0, 1}), 2);
  EXPECT_EQ(rank_of(plan, {0, 1, 0, 0}), 8);
  EXPECT_EQ(rank_of(plan, {0, 0, 1, 0}), 24);
  plan.order = {Axis::kData, Axis::kTensor, Axis::kPipeline};
  EXPECT_EQ(rank_of(plan, {0, 1, 0, 0}), 1);
  EXPECT_EQ(rank_of(plan, {1, 0, 0, 0}), 3);
  EXPECT_EQ(rank_of(plan, {0, 0, 0, 1}), 6);
  EXPECT_EQ(rank_of(plan, {0, 0, 1, 0}), 24);
  for (std::int64_t rank = 0; rank < 48; ++rank) EXPECT_EQ(rank_of(plan, coordinates_of(plan, rank)), rank);
}

/// Nodes of 8: of TP2 CP8 four context-parallel ranks share one; of TP2 CP2 both, with two replicas.
TEST(Ranks, ShareNodesWithTheirContext) {
  ParallelPlan plan;
  plan.tensor_parallel = 2;
  plan.context_parallel = 8;
  plan.data_parallel = 4;
  EXPECT_EQ(context_ranks_in_node(plan, 8), 4);
  EXPECT_EQ(data_ranks_in_node(plan, 8), 4);
  plan.context_parallel = 2;
  EXPECT_EQ(context_ranks_in_node(plan, 8), 2);
  EXPECT_EQ(data_ranks_in_node(plan, 8), 4);
}

TEST(Ranks, GoBackAndForth) {
  ParallelPlan plan;
  plan.tensor_parallel = 2;
  plan.data_parallel = 3;
  plan.pipeline_parallel = 4;
  for (std::int64_t rank = 0; rank < 24; ++rank) EXPECT_EQ(rank_of(plan, coordinates_of(plan, rank)), rank);
}

TEST(Names, AreThoseOfTheConfiguration) {
  EXPECT_EQ(to_string(ScheduleKind::kOneFOneB), "1f1b");
  EXPECT_EQ(to_string(RecomputeGranularity::kSelective), "selective");
  EXPECT_EQ(to_string(RecomputeGranularity::kOperators), "operators");
  EXPECT_EQ(to_string(RecomputeMethod::kBlock), "block");
  EXPECT_EQ(to_string(ContextCommunication::kP2p), "p2p");
  EXPECT_EQ(to_string(ContextCommunication::kAllGather), "all_gather");
  EXPECT_EQ(to_string(ContextCommunication::kAllToAll), "a2a");
  EXPECT_EQ(to_string(Precision::kBf16), "bf16");
  EXPECT_EQ(to_string(Sharding::kZero1), "zero1");
  EXPECT_EQ(to_string(Launch::kCudaGraph), "cuda-graph");
  EXPECT_EQ(to_string(Fusion::kStandard), "standard");
}

}  // namespace
}  // namespace trainsim::plan
