// SPDX-License-Identifier: Apache-2.0
#include "sim/search/space.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::search {
namespace {

/// Four layers and heads on four GPUs of one node, four sequences a step.
Base tiny() {
  Base base;
  base.model = tests::small_gpt();
  base.model.num_layers = 4;
  base.model.num_attention_heads = base.model.num_key_value_heads = 4;
  base.cluster = tests::round_cluster();
  base.plan = tests::small_plan(4, 1, 1, 1);
  base.plan.micro_batch_size = 1;
  base.plan.global_batch_size = 4;
  base.plan.data_parallel = 4;
  return base;
}

Space only(const std::vector<std::string>& assignments) {
  Space space;
  for (const std::string& text : assignments) restrict_space(space, text);
  return space;
}

std::string error_of(const std::string& assignment) {
  Space space;
  try {
    restrict_space(space, assignment);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// By hand, with TP x PP x DP = 4, 4 / DP sequences a replica and one way to recompute and to shard:
///
/// TP1 PP1 DP4: micro-batch 1                                                           1
/// TP1 PP2 DP2: micro-batch 1, 2; 1f1b and gpipe (4), two chunks with 2 micro-batches (1)  5
/// TP1 PP4 DP1: micro-batch 1, 2, 4; 1f1b and gpipe                                     6
/// TP2 PP1 DP2: micro-batch 1, 2                                                        2
/// TP2 PP2 DP1: micro-batch 1, 2, 4; 1f1b and gpipe (6), two chunks with 4, 2 (2)       8
/// TP4 PP1 DP1: micro-batch 1, 2, 4                                                     3
///
/// 25. Two chunks with one micro-batch are not a multiple of two stages: 2 more are illegal.
TEST(Space, HoldsWhatCanBeCountedByHand) {
  const Enumeration found = enumerate(only({"recompute=none", "sharding=none"}), tiny());
  EXPECT_EQ(found.legal.size(), 25U);
  EXPECT_EQ(found.considered, 27);
  ASSERT_EQ(found.illegal.size(), 1U);
  EXPECT_EQ(found.illegal[0].field, "plan.global_batch_size");
  EXPECT_EQ(found.illegal[0].count, 2);
}

/// With two ranks to a sequence, two GPUs are left for TP x PP x DP, and 4 / DP sequences a replica:
///
/// TP1 PP1 DP2: micro-batch 1, 2                                                        2
/// TP1 PP2 DP1: micro-batch 1, 2, 4; 1f1b and gpipe (6), two chunks with 4, 2 (2)       8
/// TP2 PP1 DP1: micro-batch 1, 2, 4                                                     3
///
/// 13. Illegal: two chunks with one micro-batch, and all splits with four tensor-parallel ranks or stages.
TEST(Space, SharesSequencesWhenItIsAskedTo) {
  Base base = tiny();
  base.model.attention = model::Attention::kFlash;
  const Enumeration found = enumerate(only({"context_parallel=2", "recompute=none", "sharding=none"}), base);
  EXPECT_EQ(found.legal.size(), 13U);
  for (const Candidate& each : found.legal) EXPECT_EQ(each.context_parallel, 2);
  const Enumeration both = enumerate(only({"context_parallel=1,2", "recompute=none", "sharding=none"}), base);
  EXPECT_EQ(both.legal.size(), 25U + 13U);
}

/// Splits as above; four experts are spread over 1, 2 or 4 of DP4 (1 of 25 plans), 1 or 2 of DP2 (5 + 2), 1
/// of DP1 (6 + 8 + 3): 3 + 2 * 7 + 17 = 34. Two chunks with one micro-batch are illegal with 1 and 2 of DP2,
/// and DP1: 3.
TEST(Space, SpreadsExpertsOverRanksOfAStage) {
  Base base = tiny();
  base.open_keys = {"plan.sequence_parallel"};
  base.model.experts.count = 4;
  base.model.experts.per_token = 2;
  base.model.experts.intermediate_size = 64;
  const Enumeration found = enumerate(only({"recompute=none", "sharding=none"}), base);
  EXPECT_EQ(found.legal.size(), 34U);
  EXPECT_EQ(found.considered, 37);
  for (const Candidate& each : found.legal) EXPECT_EQ(each.data_parallel % each.expert_parallel, 0);
  // Whole experts on tensor-parallel ranks: 1, 2 or 4 of the t D ranks. TP1 as before (3 + 10 + 6), TP2 PP1
  // over 4 (2 * 3), TP2 PP2 over 2 (8 * 2), TP4 over 4 (3 * 3).
  base.plan.expert_tensor_parallel = 1;
  EXPECT_EQ(enumerate(only({"recompute=none", "sharding=none"}), base).legal.size(), 50U);
  EXPECT_EQ(enumerate(only({"recompute=none", "sharding=none", "expert_parallel=4"}), base).legal.size(),
            1U + 2U + 3U);
}

TEST(Space, SetsTheExpertsOfACandidate) {
  Base base = tiny();
  base.model.experts.count = 4;
  base.open_keys = {"plan.data_parallel"};
  base.plan.tensor_parallel = base.plan.expert_tensor_parallel = 2;
  base.plan.data_parallel = 2;
  Candidate candidate = candidate_of(base.plan);
  candidate.expert_parallel = 2;
  EXPECT_EQ(applied(candidate, base).expert_parallel, 2);
  EXPECT_EQ(overrides_for(candidate, base), std::vector<std::string>{"plan.expert_parallel=2"});
  // Ranks that share an expert are those that share a layer.
  candidate.tensor_parallel = 4;
  candidate.data_parallel = 1;
  candidate.expert_parallel = 1;
  EXPECT_EQ(overrides_for(candidate, base),
            (std::vector<std::string>{"plan.tensor_parallel=4", "plan.expert_tensor_parallel=4",
                                      "plan.gradient_accumulation=4"}));
}

TEST(Space, SetsTheContextOfACandidate) {
  Base base = tiny();
  base.open_keys = {"plan.data_parallel"};
  Candidate candidate = candidate_of(base.plan);
  candidate.context_parallel = 4;
  candidate.data_parallel = 1;
  EXPECT_EQ(applied(candidate, base).context_parallel, 4);
  EXPECT_EQ(overrides_for(candidate, base).front(), "plan.context_parallel=4");
}

/// The same 27 in six ways to recompute and two to shard, none and ZeRO-1, with which 25 are legal. 1 + 2 + 3
/// of them have one stage, and can be sharded with ZeRO-2 and ZeRO-3, too; with FSDP all can.
TEST(Space, MultipliesByRecomputationAndSharding) {
  const Enumeration found = enumerate({}, tiny());
  EXPECT_EQ(found.considered, 27 * 6 * 2 + 6 * 6 * 2);
  EXPECT_EQ(found.legal.size(), static_cast<std::size_t>(25 * 6 * 2 + 6 * 6 * 2));
  Base fsdp = tiny();
  fsdp.plan.framework = plan::Framework::kFsdp;
  EXPECT_EQ(enumerate({}, fsdp).considered, 27 * 6 * 4);
  EXPECT_EQ(enumerate({}, fsdp).legal.size(), static_cast<std::size_t>(25 * 6 * 4));
  // Named, they are tried in pipelines, too, and bring FSDP along where the framework is open.
  Base open = tiny();
  open.open_keys.emplace_back("software.framework");
  EXPECT_EQ(enumerate(only({"sharding=zero3"}), open).legal.size(), static_cast<std::size_t>(25 * 6));
}

/// FSDP's gated models multiply queries, keys and values apart, if the configuration does not say how.
TEST(Space, TakesFusedLinearsOfTheFrameworkWhereTheyAreOpen) {
  Base open = tiny();
  open.model.activation = model::Activation::kSwiglu;
  open.open_keys = {"software.framework", "software.fused_linears"};
  Candidate candidate = candidate_of(open.plan);
  candidate.sharding = plan::Sharding::kZero3;
  EXPECT_EQ(applied(candidate, open).fused_linears, (plan::FusedLinears{false, false}));
  open.open_keys.pop_back();
  EXPECT_EQ(applied(candidate, open).fused_linears, (plan::FusedLinears{true, true}));
}

TEST(Space, HasNoCandidateTwice) {
  const Enumeration found = enumerate({}, tiny());
  std::set<std::vector<std::string>> seen;
  for (const Candidate& c : found.legal) {
    std::vector<std::string> key = {
        std::to_string(c.tensor_parallel),  std::to_string(c.pipeline_parallel),
        std::to_string(c.virtual_pipeline), std::to_string(c.micro_batch_size),
        plan::to_string(c.schedule),        to_string(c.recompute.recompute),
        plan::to_string(c.sharding),        c.recompute.fewest_layers ? "block" : ""};
    EXPECT_TRUE(seen.insert(key).second);
    EXPECT_EQ(c.tensor_parallel * c.pipeline_parallel * c.data_parallel, 4);
  }
}

/// 96 layers in 8 stages are 12 a stage: 2, 3, 4, 6 and 12 chunks. Of 126 with embedding and head as layers
/// of their own, 128, 16 stages have 8, in 2, 4 or 8 chunks; without them 126 / 16 is no whole number.
TEST(Space, DealsLayersOutEvenly) {
  EXPECT_EQ(even_chunks(96, 8), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(even_chunks(126, 16), (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(even_chunks(126, 1), (std::vector<std::int64_t>{1}));
}

TEST(Space, KeepsToGivenValues) {
  const Enumeration found =
      enumerate(only({"plan.tensor_parallel=2", "pipeline_parallel=2", "virtual_pipeline=2",
                      "micro_batch_size=1", "schedule=interleaved", "recompute=mlp+core_attn, full",
                      "sharding=zero1", "sequence_parallel=true,false"}),
                tiny());
  ASSERT_EQ(found.legal.size(), 4U);
  EXPECT_EQ(to_string(found.legal[0].recompute.recompute), "core_attn+mlp");
  EXPECT_EQ(to_string(found.legal[1].recompute.recompute), "full");
  EXPECT_TRUE(found.legal[0].sequence_parallel);
  EXPECT_FALSE(found.legal[2].sequence_parallel);
}

/// PP1, PP2 and PP4 with one chunk each; the two chunks of PP2 would be interleaved.
TEST(Space, TakesSchedulesThatSuit) {
  const Space space =
      only({"tensor_parallel=1", "micro_batch_size=1", "recompute=none", "sharding=none", "schedule=1f1b"});
  const Enumeration found = enumerate(space, tiny());
  ASSERT_EQ(found.legal.size(), 3U);
  EXPECT_TRUE(found.illegal.empty());
  for (const Candidate& candidate : found.legal) EXPECT_EQ(candidate.schedule, plan::ScheduleKind::kOneFOneB);
}

/// PP2 and PP4 with one chunk; of one stage all schedules are the same.
TEST(Space, TakesZeroBubbleSchedulesThatAreNamed) {
  const Space space = only({"tensor_parallel=1", "virtual_pipeline=1", "micro_batch_size=1", "recompute=none",
                            "sharding=none", "schedule=zb-h1,zb-h2"});
  const Enumeration found = enumerate(space, tiny());
  std::int64_t zero_bubble = 0;
  for (const Candidate& candidate : found.legal) {
    const bool splits = applied(candidate, tiny()).splits_backward();
    EXPECT_TRUE(splits || candidate.pipeline_parallel == 1);
    zero_bubble += splits ? 1 : 0;
  }
  EXPECT_EQ(zero_bubble, 4);
}

/// Left open it is free; written, it is meant.
TEST(Space, SplitsSequencesUnlessTheConfigurationSaysNo) {
  Base base = tiny();
  base.plan.sequence_parallel = false;
  const Space space = only({"recompute=none", "sharding=none", "tensor_parallel=2"});
  EXPECT_FALSE(enumerate(space, base).legal.front().sequence_parallel);
  base.open_keys = {"plan.sequence_parallel"};
  EXPECT_TRUE(enumerate(space, base).legal.front().sequence_parallel);
}

TEST(Space, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(
      error_of("tensor_paralel=2"),
      "--vary 'tensor_paralel=2': error: 'tensor_paralel' is not a setting that a search varies; use "
      "tensor_parallel, pipeline_parallel, virtual_pipeline, micro_batch_size, schedule, sequence_parallel, "
      "recompute, sharding, context_parallel or expert_parallel (did you mean 'tensor_parallel'?); other "
      "keys "
      "can be set for all plans with --set");
  EXPECT_EQ(error_of("tensor_parallel"),
            "--vary 'tensor_parallel': error: a setting and its values are needed, as in --vary "
            "micro_batch_size=1,2,4");
  EXPECT_EQ(
      error_of("tensor_parallel=2,x"),
      "--vary 'tensor_parallel=2,x': error: 'x' is not a value of this setting; use whole numbers from 1 to "
      "1000000");
  EXPECT_EQ(error_of("micro_batch_size=1,,2"),
            "--vary 'micro_batch_size=1,,2': error: a value is missing; use whole numbers from 1 to 1000000");
  EXPECT_EQ(
      error_of("micro_batch_size=0"),
      "--vary 'micro_batch_size=0': error: '0' is not a value of this setting; use whole numbers from 1 to "
      "1000000");
  EXPECT_EQ(
      error_of("schedule=1f1"),
      "--vary 'schedule=1f1': error: '1f1' is not a value of this setting; use gpipe, 1f1b, interleaved, "
      "zb-h1 or zb-h2 (did you mean '1f1b'?)");
  EXPECT_EQ(
      error_of("recompute=core_attn+attn"),
      "--vary 'recompute=core_attn+attn': error: 'core_attn+attn' is not a value of this setting; use none, "
      "selective, full, block or sums of core_attn, layernorm, activation, mlp and moe as in core_attn+mlp");
  EXPECT_EQ(error_of("expert_parallel=2"), "");
  EXPECT_EQ(
      error_of("data_parallel=2"),
      "--vary 'data_parallel=2': error: data_parallel is what tensor_parallel and pipeline_parallel leave of "
      "the GPUs; vary those");
}

TEST(Candidate, IsNoOverrideForTheConfigurationItself) {
  const Base base = tiny();
  EXPECT_TRUE(overrides_for(candidate_of(base.plan), base).empty());
}

TEST(Candidate, SetsWhatDiffersAndWhatFollows) {
  Base base = tiny();
  base.plan.pipeline_layout = {4};
  base.open_keys = {"plan.data_parallel", "plan.global_batch_size", "plan.schedule"};
  Candidate candidate = candidate_of(base.plan);
  candidate.pipeline_parallel = 2;
  candidate.data_parallel = 2;
  candidate.recompute.recompute = {plan::RecomputeGranularity::kFull, plan::RecomputeMethod::kBlock, 1};
  candidate.sharding = plan::Sharding::kZero1;
  EXPECT_EQ(overrides_for(candidate, base),
            (std::vector<std::string>{"plan.pipeline_parallel=2", "plan.global_batch_size=4",
                                      "plan.gradient_accumulation=2", "plan.schedule=1f1b",
                                      "plan.recompute={granularity: full, method: block, layers: 1}",
                                      "plan.sharding=zero1", "plan.pipeline_layout=[]"}));
}

TEST(Candidate, NamesRecomputationByOperators) {
  const plan::Recompute operators{plan::RecomputeGranularity::kOperators};
  EXPECT_EQ(recompute_value(operators), "operators");
  EXPECT_EQ(to_string(operators), "operators");
}

TEST(Candidate, PrefersTheSimplerOfTwo) {
  const plan::ParallelPlan plan = tiny().plan;
  plan::ParallelPlan other = plan;
  EXPECT_FALSE(simpler(plan, other));
  other.tensor_parallel = 2;
  EXPECT_TRUE(simpler(plan, other));
  EXPECT_FALSE(simpler(other, plan));
  plan::ParallelPlan gpipe = plan;
  gpipe.schedule = plan::ScheduleKind::kGpipe;
  EXPECT_TRUE(simpler(plan, gpipe));
}

}  // namespace
}  // namespace trainsim::search
