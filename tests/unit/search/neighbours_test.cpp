// SPDX-License-Identifier: Apache-2.0
#include "sim/search/neighbours.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::search {
namespace {

/// Eight layers and heads on 16 GPUs in two nodes; 64 sequences a step.
Base base_of(std::int64_t tensor, std::int64_t pipeline, std::int64_t chunks) {
  Base base;
  base.model = tests::small_gpt();
  base.cluster = tests::round_cluster();
  base.plan = tests::small_plan(16, tensor, pipeline, chunks);
  base.plan.micro_batch_size = 1;
  base.plan.global_batch_size = 64;
  base.open_keys = {"plan.data_parallel"};
  return base;
}

std::vector<std::string> changes(const Neighbourhood& around) {
  std::vector<std::string> list(around.legal.size());
  std::transform(around.legal.begin(), around.legal.end(), list.begin(),
                 [](const Neighbour& each) { return each.change; });
  return list;
}

bool has(const Neighbourhood& around, const std::string& change) {
  const std::vector<std::string> list = changes(around);
  return std::find(list.begin(), list.end(), change) != list.end();
}

TEST(Neighbours, MoveEachSettingByOneLegalStep) {
  const Neighbourhood around = neighbours_of(base_of(2, 2, 1));
  for (const char* change :
       {"tensor_parallel 2 -> 1, data_parallel 4 -> 8", "tensor_parallel 2 -> 1, pipeline_parallel 2 -> 4",
        "tensor_parallel 2 -> 4, data_parallel 4 -> 2", "tensor_parallel 2 -> 4, pipeline_parallel 2 -> 1",
        "pipeline_parallel 2 -> 1, data_parallel 4 -> 8", "pipeline_parallel 2 -> 4, data_parallel 4 -> 2",
        "virtual_pipeline 1 -> 2, schedule 1f1b -> interleaved", "micro_batch_size 1 -> 2",
        "schedule 1f1b -> gpipe", "recompute none -> selective", "sharding none -> zero1"}) {
    EXPECT_TRUE(has(around, change)) << change;
  }
  // Nothing is below one micro-batch, one chunk, no recomputation, no sharding.
  EXPECT_FALSE(has(around, "micro_batch_size 1 -> 0"));
}

TEST(Neighbours, ShareSequencesAmongMoreOrFewerRanks) {
  Base base = base_of(2, 1, 1);
  base.model.attention = model::Attention::kFlash;
  base.plan.context_parallel = 2;
  base.plan.data_parallel = 4;
  const Neighbourhood around = neighbours_of(base);
  EXPECT_TRUE(has(around, "context_parallel 2 -> 4, data_parallel 4 -> 2"));
  EXPECT_TRUE(has(around, "context_parallel 2 -> 1, data_parallel 4 -> 8"));
  EXPECT_TRUE(has(around, "tensor_parallel 2 -> 4, data_parallel 4 -> 2"));
  EXPECT_TRUE(has(around, "pipeline_parallel 1 -> 2, data_parallel 4 -> 2"));
}

TEST(Neighbours, SpreadExpertsOverMoreOrFewerRanks) {
  Base base = base_of(1, 1, 1);
  EXPECT_FALSE(has(neighbours_of(base), "expert_parallel 1 -> 2"));
  base.model.experts.count = 8;
  base.model.experts.per_token = 2;
  base.model.experts.intermediate_size = 64;
  EXPECT_TRUE(has(neighbours_of(base), "expert_parallel 1 -> 2"));
  base.plan.expert_parallel = 4;
  const Neighbourhood around = neighbours_of(base);
  EXPECT_TRUE(has(around, "expert_parallel 4 -> 2"));
  EXPECT_TRUE(has(around, "expert_parallel 4 -> 8"));
}

TEST(Neighbours, KeepChunksWhereTheyCanStay) {
  const Neighbourhood around = neighbours_of(base_of(1, 4, 2));
  // 8 layers are 8 chunks of one in 8 stages, so that two chunks become one.
  EXPECT_TRUE(
      has(around,
          "pipeline_parallel 4 -> 8, virtual_pipeline 2 -> 1, data_parallel 4 -> 2, schedule interleaved -> "
          "1f1b"));
  EXPECT_TRUE(has(around, "pipeline_parallel 4 -> 2, data_parallel 4 -> 8"));
  EXPECT_TRUE(has(around, "virtual_pipeline 2 -> 1, schedule interleaved -> 1f1b"));
}

TEST(Neighbours, SwitchOverlapWhereItMeansSomething) {
  const Neighbourhood one_gpu = neighbours_of(base_of(1, 1, 1));
  EXPECT_TRUE(has(one_gpu, "overlap_gradient_reduction true -> false"));
  EXPECT_FALSE(has(one_gpu, "overlap_point_to_point false -> true"));
  EXPECT_FALSE(has(one_gpu, "overlap_tensor_communication true -> false"));
  const Neighbourhood split = neighbours_of(base_of(2, 2, 1));
  EXPECT_TRUE(has(split, "overlap_tensor_communication true -> false"));
}

TEST(Neighbours, ComeWithTheirOverrides) {
  const Neighbourhood around = neighbours_of(base_of(2, 2, 1));
  const auto found = std::find_if(around.legal.begin(), around.legal.end(), [](const Neighbour& each) {
    return each.change == "tensor_parallel 2 -> 4, data_parallel 4 -> 2";
  });
  ASSERT_NE(found, around.legal.end());
  EXPECT_EQ(found->overrides.front(), "plan.tensor_parallel=4");
}

TEST(Neighbours, ChangeOneLayerOfBlockRecomputation) {
  Base base = base_of(2, 2, 1);
  base.plan.recompute = {plan::RecomputeGranularity::kFull, plan::RecomputeMethod::kBlock, 1};
  const Neighbourhood around = neighbours_of(base);
  EXPECT_TRUE(has(around, "recompute block 1 -> none"));
  EXPECT_TRUE(has(around, "recompute block 1 -> block 2"));
}

}  // namespace
}  // namespace trainsim::search
