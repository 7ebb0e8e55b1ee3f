// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/plan/plan.hpp"

namespace trainsim::plan {
namespace {

using Texts = std::vector<std::string>;

/// A legal plan for 12 experts on 16 GPUs of one node, for tests to change in one place.
class ExpertRules : public testing::Test {
 protected:
  ExpertRules() {
    model_.name = "mixture";
    model_.num_layers = 24;
    model_.hidden_size = 1024;
    model_.num_attention_heads = model_.num_key_value_heads = 16;
    model_.head_dim = 64;
    model_.intermediate_size = 4096;
    model_.vocab_size = 50257;
    model_.sequence_length = model_.max_position_embeddings = 1024;
    model_.experts.count = 12;
    model_.experts.per_token = 2;
    model_.experts.intermediate_size = 512;
    cluster_.gpu.name = "chip";
    cluster_.gpu.peak_bf16 = 300e12;
    cluster_.gpus_per_node = 16;
    cluster_.intra_node.bandwidth = 300e9;
    set(2, 4);
  }

  void set(std::int64_t tensor, std::int64_t experts) {
    plan_.gpus = 16;
    plan_.tensor_parallel = tensor;
    plan_.sequence_parallel = tensor > 1;
    plan_.data_parallel = plan_.global_batch_size = 16 / tensor;
    plan_.expert_parallel = experts;
  }

  Texts problems() const {
    Texts texts;
    for (const Problem& problem : check(plan_, model_, cluster_, {}))
      texts.push_back(problem.field + ": " + problem.message);
    return texts;
  }

  ParallelPlan plan_;
  model::ModelSpec model_;
  hardware::ClusterSpec cluster_;
};

TEST_F(ExpertRules, AcceptALegalPlan) {
  EXPECT_EQ(problems(), Texts{});
  plan_.expert_tensor_parallel = 1;
  EXPECT_EQ(problems(), Texts{});
  plan_.expert_tensor_parallel = 2;
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(ExpertRules, NeedADegreeThatDividesTheExperts) {
  set(2, 8);
  EXPECT_EQ(problems(),
            Texts{"plan.expert_parallel: 8 does not divide the 12 experts of a layer; legal here: "
                  "1, 2, 4"});
}

TEST_F(ExpertRules, NeedADegreeThatDividesTheRanksOfAStage) {
  set(2, 3);
  EXPECT_EQ(problems(), Texts{"plan.expert_parallel: 3 does not divide data_parallel 8, whose ranks the "
                              "experts are spread over; legal here: 1, 2, 4"});
  plan_.expert_tensor_parallel = 1;
  EXPECT_EQ(
      problems(),
      Texts{"plan.expert_parallel: 3 does not divide data_parallel 8 x tensor_parallel 2 = 16, the ranks "
            "of a stage that experts can be spread over; legal here: 1, 2, 4"});
}

TEST_F(ExpertRules, SpreadExpertsOverRanksOfASequenceAsWell) {
  model_.attention = model::Attention::kFlash;
  set(2, 4);
  plan_.context_parallel = 2;
  plan_.data_parallel = plan_.global_batch_size = 4;
  EXPECT_EQ(problems(), Texts{});
  plan_.expert_parallel = 3;
  EXPECT_EQ(
      problems(),
      Texts{
          "plan.expert_parallel: 3 does not divide data_parallel 4 x context_parallel 2 = 8, the ranks of a "
          "stage that experts can be spread over; legal here: 1, 2, 4"});
}

TEST_F(ExpertRules, HaveNoUseForDegreesOfADenseModel) {
  model_.experts = {};
  EXPECT_EQ(problems(),
            Texts{"plan.expert_parallel: 4 needs a model with experts, and mixture is dense; legal "
                  "here: 1, or describe the experts in model.experts"});
  set(2, 1);
  plan_.expert_tensor_parallel = 1;
  EXPECT_EQ(problems(),
            Texts{"plan.expert_tensor_parallel: means nothing for mixture, which is dense; remove "
                  "this key, or describe the experts in model.experts"});
}

TEST_F(ExpertRules, SplitAnExpertOverAllTensorRanksOrNone) {
  set(4, 2);
  plan_.expert_tensor_parallel = 2;
  EXPECT_EQ(problems(),
            Texts{"plan.expert_tensor_parallel: 2 is neither 1 nor tensor_parallel; legal here: 1, "
                  "4"});
}

TEST_F(ExpertRules, SplitWidthsEvenly) {
  model_.experts.intermediate_size = 513;
  EXPECT_EQ(problems(), Texts{"plan.expert_tensor_parallel: 2 does not divide the width 513 of an expert "
                              "(model.experts.intermediate_size); legal here: 1"});
  plan_.expert_tensor_parallel = 1;
  EXPECT_EQ(problems(), Texts{});
  model_.experts.shared_intermediate_size = 99;
  EXPECT_EQ(problems(), Texts{"plan.tensor_parallel: 2 does not divide the width 99 of the shared experts "
                              "(model.experts.shared_intermediate_size)"});
}

TEST_F(ExpertRules, DoNotAskForTheWidthOfAnMlpThatNoLayerHas) {
  model_.intermediate_size = 513;
  EXPECT_EQ(problems(), Texts{});
  model_.experts.dense_layers = 1;
  EXPECT_EQ(problems(),
            Texts{"plan.tensor_parallel: 2 does not divide the intermediate_size 513; legal here: "
                  "1"});
}

/// NVIDIA/Megatron-LM issue 1587.
TEST_F(ExpertRules, D02_NeedSequenceParallelismBesideTensorParallelism) {
  plan_.sequence_parallel = false;
  EXPECT_EQ(
      problems(),
      Texts{"plan.sequence_parallel: experts with tensor_parallel 2 need it, so that each rank routes its "
            "own tokens (Megatron-LM asks for it, too); write sequence_parallel: true, or "
            "tensor_parallel: 1"});
}

TEST_F(ExpertRules, LimitWhatTheFullestRankCanGet) {
  // 3 of 12 experts on a rank, 2 visits for each token: all tokens come to it twice, as every copy of four
  // ranks.
  model_.experts.imbalance = 4;
  EXPECT_EQ(problems(), Texts{});
  model_.experts.imbalance = 4.5;
  EXPECT_EQ(
      problems(),
      Texts{"model.experts.imbalance: 4.5 times an even share of tokens is more than a rank with 3 of 12 "
            "experts can get when each token visits 2; legal here: 1 to 4"});
  // 3 experts on a rank, 5 visits: 3 of 5 copies of all tokens at most, where an even share is 5/4 of one.
  model_.experts.per_token = 5;
  model_.experts.imbalance = 2.4;
  EXPECT_EQ(problems(), Texts{});
  model_.experts.imbalance = 2.41;
  EXPECT_EQ(
      problems(),
      Texts{"model.experts.imbalance: 2.41 times an even share of tokens is more than a rank with 3 of 12 "
            "experts can get when each token visits 5; legal here: 1 to 2.4"});
}

TEST_F(ExpertRules, WarnOfImbalanceWithoutEffect) {
  model_.experts.imbalance = 1.5;
  const auto warned = [this] {
    Texts texts;
    for (const Problem& warning : warnings(plan_, model_, cluster_))
      texts.push_back(warning.field + ": " + warning.message);
    return texts;
  };
  EXPECT_EQ(warned(), Texts{});
  set(2, 1);
  EXPECT_EQ(warned(),
            Texts{"model.experts.imbalance: has no effect with expert_parallel 1, where each rank has all "
                  "experts of its tokens"});
}

TEST_F(ExpertRules, DoNotGoIntoACudaGraph) {
  plan_.launch = Launch::kCudaGraph;
  EXPECT_EQ(
      problems(),
      Texts{
          "software.launch: cuda-graph can't hold layers with experts: the host must learn from the GPU how "
          "many tokens each of them gets before it goes on; legal here: eager, compiled or blocking"});
}

TEST_F(ExpertRules, NameWhatIsNotModelledBesideThem) {
  plan_.sharding = Sharding::kZero3;
  plan_.framework = Framework::kFsdp;
  EXPECT_EQ(problems(), Texts{});
  plan_.shard_group = 4;
  plan_.lora.rank = 8;
  const std::string version = " of a model with experts is not supported by this version; legal here: ";
  EXPECT_EQ(problems(), (Texts{"plan.sharding.group: sharding in groups" + version + "all",
                               "plan.lora: low-rank adaptation" + version +
                                   "no adapters, so that all weights are trained"}));
  plan_.sharding = Sharding::kZero1;
  plan_.framework = Framework::kMegatron;
  plan_.shard_group = 0;
  plan_.lora.rank = 0;
  plan_.offload.optimizer = OffloadTarget::kCpu;
  EXPECT_EQ(problems().front(),
            "plan.sharding.offload: the cluster  does not say what its hosts are; add "
            "cluster.host with memory, memory_bandwidth, memory_efficiency, "
            "pcie_bandwidth, uplink_bandwidth and pcie_efficiency");
  EXPECT_EQ(problems().back(), "plan.sharding.offload: offloading" + version + "none");
}

TEST_F(ExpertRules, RecomputeExpertsOnlyWhereThereAreSome) {
  plan_.recompute.granularity = RecomputeGranularity::kSelective;
  plan_.recompute.modules.experts = true;
  EXPECT_EQ(problems(), Texts{});
  model_.experts = {};
  set(2, 1);
  EXPECT_EQ(problems(),
            Texts{"plan.recompute.modules: moe is the part of a layer with experts, and mixture is "
                  "dense; write mlp instead"});
}

/// Megatron-LM's parallel_state: ranks of a stage in the order tp, dp are dealt out to etp, ep, edp.
TEST_F(ExpertRules, CoordinatesOfExperts) {
  set(2, 4);
  const ExpertCoordinates split = expert_coordinates_of(plan_, {1, 5, 0});
  EXPECT_EQ(split.tensor, 1);
  EXPECT_EQ(split.expert, 1);  // data rank 5 of groups of 4
  EXPECT_EQ(split.data, 1);
  plan_.expert_tensor_parallel = 1;
  const ExpertCoordinates whole = expert_coordinates_of(plan_, {1, 5, 0});  // place 11
  EXPECT_EQ(whole.tensor, 0);
  EXPECT_EQ(whole.expert, 3);
  EXPECT_EQ(whole.data, 2);
  const Coordinates back = coordinates_of(plan_, whole, 7);
  EXPECT_EQ(back.tensor, 1);
  EXPECT_EQ(back.data, 5);
  EXPECT_EQ(back.stage, 7);
}

}  // namespace
}  // namespace trainsim::plan
