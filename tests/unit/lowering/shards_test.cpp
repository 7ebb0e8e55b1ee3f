// SPDX-License-Identifier: Apache-2.0
// InternEvo's optimizer, whose state is shared by whole weights, by hand.
#include "sim/lowering/shards.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "sim/lowering/state.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using program::CollectiveOp;
using program::GroupKind;
using program::Instruction;
using program::MemoryCategory;
using program::Stream;
using tests::gpt;

using Lists = std::vector<std::vector<std::int64_t>>;

TEST(DealtOut, GivesTheLargestWeightToTheRankWithFewest) {
  // 9 to the first, 8 to the second, 5 to the second (8 < 9), 3 and 3 to the first (9, then 12 < 13).
  EXPECT_EQ(dealt_out({28, {5, 9, 3, 3, 8}, 2}), (Lists{{9, 3, 3}, {8, 5}}));
}

TEST(DealtOut, LeavesOutRanksWithoutAny) {
  EXPECT_EQ(dealt_out({12, {5, 7}, 8}), (Lists{{7}, {5}}));
  EXPECT_EQ(dealt_out({0, {}, 8}), Lists{});
}

plan::ParallelPlan internevo(std::int64_t ranks) {
  plan::ParallelPlan plan = tests::split_plan({1, 1, 1, ranks}, 2);
  plan.framework = plan::Framework::kInternEvo;
  plan.sharding = plan::Sharding::kZero1;
  plan.gradient_bytes = 2;
  return plan;
}

constexpr std::int64_t kHidden = 512;
/// 8192 words and 256 positions, which is the largest weight of eight layers.
constexpr std::int64_t kTable = (8192 + 256) * kHidden;
constexpr std::int64_t kParameters = 8 * (12 * kHidden * kHidden + 13 * kHidden) + kTable + 2 * kHidden;

TEST(InternEvo, AddsGradientsUpEverywhereAndSendsEachRanksWeights) {
  const program::Program program = tests::programs_of(gpt({8}), internevo(4)).front();
  double reduced = 0;
  for (const Instruction& each : tests::collectives(program, Stream::kData, GroupKind::kData)) {
    EXPECT_EQ(each.collective, CollectiveOp::kAllReduce);
    reduced += each.amount;
  }
  EXPECT_EQ(reduced, 2.0 * kParameters);
  double sent = 0;
  double largest = 0;
  const std::vector<Instruction> own = tests::collectives(program, Stream::kCompute, GroupKind::kData);
  EXPECT_EQ(own.size(), 4U);
  for (const Instruction& each : own) {
    EXPECT_EQ(each.collective, CollectiveOp::kBroadcast);
    sent += each.amount;
    largest = std::max(largest, each.amount);
  }
  EXPECT_EQ(sent, 2.0 * kParameters);
  // An even share is less than what the fullest rank has.
  EXPECT_GT(largest, 2.0 * kParameters / 4);
}

/// Nodes share the state, and all nodes have it, but gradients are added up by all ranks at once.
TEST(InternEvo, AddsGradientsUpOverAllNodesThatHoldTheState) {
  plan::ParallelPlan plan = internevo(16);
  plan.shard_group = 8;
  const program::Job job = tests::make_job(gpt({8}), tests::round_cluster(), plan, {false, false});
  for (const program::Group& group : job.groups) {
    EXPECT_TRUE(group.kind == GroupKind::kData || group.kind == GroupKind::kShard);
    EXPECT_EQ(group.size, group.kind == GroupKind::kData ? 16 : 8);
  }
  const program::Program& program = job.programs.front();
  EXPECT_FALSE(tests::collectives(program, Stream::kData, GroupKind::kData).empty());
  EXPECT_EQ(tests::collectives(program, Stream::kCompute, GroupKind::kShard).size(), 8U);
}

/// On more ranks than weights the table alone is the largest share: 12 bytes of state for each of its
/// parameters stay on its rank, whatever the number of ranks.
TEST(InternEvo, HoldsAtLeastTheLargestWeight) {
  const auto state = [](std::int64_t ranks) {
    const program::MemoryByCategory memory = tests::memory_of(gpt({8}), internevo(ranks)).front().at_end;
    return tests::of(memory, MemoryCategory::kOptimizerState);
  };
  EXPECT_GT(state(4), 12 * kTable);
  EXPECT_EQ(state(64), 12 * kTable);
  EXPECT_EQ(state(128), 12 * kTable);
}

/// 4 bytes of fp32 gradients and twice 4 of Adam's temporaries beside 2 of parameters, 2 of gradients and 12
/// of optimizer state: 28 for each parameter of a single rank, and 26 at a time before (one flat copy in
/// bf16).
TEST(InternEvo, NeedsTwelveBytesPerParameterForItsStep) {
  plan::ParallelPlan plan = internevo(1);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  plan.recompute.method = plan::RecomputeMethod::kUniform;
  const memory::Profile profile = tests::memory_of(gpt({8}), plan).front();
  EXPECT_EQ(tests::of(profile.largest, MemoryCategory::kTemporary), 12 * kParameters);
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kTemporary), 0);
  const auto kept = std::accumulate(profile.at_end.begin(), profile.at_end.end(), Bytes{0});
  EXPECT_EQ(kept, 16 * kParameters);
}

TEST(InternEvo, KeepsShardsOfAllWithZero3) {
  plan::ParallelPlan plan = internevo(4);
  plan.sharding = plan::Sharding::kZero3;
  const memory::Profile profile = tests::memory_of(gpt({8}), plan).front();
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kParameters), 2 * kParameters / 4);
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kGradients), 2 * kParameters / 4);
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kOptimizerState), 12 * kParameters / 4);
}

}  // namespace
}  // namespace trainsim::lowering
