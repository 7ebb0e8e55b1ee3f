// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters of sharded parameters, by hand for a GPT of eight layers.
#include "sim/lowering/sharded_units.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using plan::Sharding;
using program::CollectiveOp;
using program::GroupKind;
using program::Instruction;
using program::MemoryCategory;
using program::Program;
using program::Stream;
using tests::gpt;
using tests::programs_of;
using tests::split_plan;

constexpr std::int64_t kLayers = 8;
/// h = 512: 12 h^2 + 13 h of a layer; 8192 words, 256 positions and a final norm in the root.
constexpr std::int64_t kLayer = 12 * 512 * 512 + 13 * 512;
constexpr std::int64_t kRoot = (8192 + 256 + 2) * 512;

ParallelPlan sharded_plan(Sharding sharding, std::int64_t micro_batches = 1) {
  ParallelPlan plan = split_plan({1, 1, 1, 4}, micro_batches);
  plan.sharding = sharding;
  return plan;
}

/// A gather or a scatter with its bytes.
struct Transfer {
  CollectiveOp op;
  double bytes;
  bool operator==(const Transfer&) const = default;
};

std::vector<Transfer> transfers_of(const ParallelPlan& plan) {
  const Program program = programs_of(gpt({kLayers}), plan).front();
  EXPECT_TRUE(tests::collectives(program, Stream::kCompute, GroupKind::kData).empty());
  std::vector<Transfer> transfers;
  for (const Instruction& each : tests::collectives(program, Stream::kData, GroupKind::kData)) {
    transfers.push_back({each.collective, each.amount});
  }
  return transfers;
}

const Transfer kGatherRoot = {CollectiveOp::kAllGather, 2.0 * kRoot};
const Transfer kGatherLayer = {CollectiveOp::kAllGather, 2.0 * kLayer};
const Transfer kScatterLayer = {CollectiveOp::kReduceScatter, 4.0 * kLayer};
const Transfer kScatterRoot = {CollectiveOp::kReduceScatter, 4.0 * kRoot};

TEST(ShardedUnits, GatherTwiceAndScatterOnceWithZero3) {
  std::vector<Transfer> expected = {kGatherRoot};
  expected.insert(expected.end(), kLayers, kGatherLayer);
  // Backward runs two gathers ahead of the first scatter, and then alternates.
  expected.insert(expected.end(), 2, kGatherLayer);
  for (int layer = 0; layer < kLayers - 2; ++layer) {
    expected.push_back(kScatterLayer);
    expected.push_back(kGatherLayer);
  }
  expected.insert(expected.end(), 2, kScatterLayer);
  expected.push_back(kScatterRoot);
  EXPECT_EQ(transfers_of(sharded_plan(Sharding::kZero3)), expected);
}

TEST(ShardedUnits, GatherOnceWithZero2) {
  std::vector<Transfer> expected = {kGatherRoot};
  expected.insert(expected.end(), kLayers, kGatherLayer);
  expected.insert(expected.end(), kLayers, kScatterLayer);
  expected.push_back(kScatterRoot);
  EXPECT_EQ(transfers_of(sharded_plan(Sharding::kZero2)), expected);
}

/// 2 + 2 + 4 bytes per parameter of a layer and 2 + 4 of the root in each micro-batch: Zhao et al. 2023 count
/// 3 M (W - 1) / W elements for full sharding.
TEST(ShardedUnits, MoveThePublishedVolumeInEveryMicroBatch) {
  for (const std::int64_t micro_batches : {1, 3}) {
    double bytes = 0;
    for (const Transfer& transfer : transfers_of(sharded_plan(Sharding::kZero3, micro_batches))) {
      bytes += transfer.bytes;
    }
    EXPECT_EQ(bytes, static_cast<double>(micro_batches * (8 * kLayers * kLayer + 6 * kRoot)));
  }
}

Transfer gather_of(std::int64_t layers) {
  return {CollectiveOp::kAllGather, 2.0 * static_cast<double>(layers * kLayer)};
}
Transfer scatter_of(std::int64_t layers) {
  return {CollectiveOp::kReduceScatter, 4.0 * static_cast<double>(layers * kLayer)};
}

/// Three layers a unit make units of 3, 3 and 2; so do as many parameters as two layers and one more have.
TEST(ShardedUnits, HaveSeveralLayers) {
  const std::vector<Transfer> expected = {kGatherRoot,   gather_of(3),  gather_of(3),  gather_of(2),
                                          gather_of(2),  gather_of(3),  scatter_of(2), gather_of(3),
                                          scatter_of(3), scatter_of(3), kScatterRoot};
  ParallelPlan plan = sharded_plan(Sharding::kZero3);
  plan.units.layers = 3;
  EXPECT_EQ(transfers_of(plan), expected);
  plan.units = {1, 2 * kLayer + 1};
  EXPECT_EQ(transfers_of(plan), expected);
}

/// After the backward of a unit its gradients go before or behind the next gather.
TEST(ShardedUnits, GatherForBackwardWhenAsked) {
  using plan::BackwardPrefetch;
  ParallelPlan plan = sharded_plan(Sharding::kZero3);
  plan.units.layers = 4;
  const std::vector<Transfer> forward = {kGatherRoot, gather_of(4), gather_of(4)};
  const auto with = [&](std::vector<Transfer> backward) {
    std::vector<Transfer> all = forward;
    all.insert(all.end(), backward.begin(), backward.end());
    all.push_back(kScatterRoot);
    return all;
  };
  EXPECT_EQ(transfers_of(plan), with({gather_of(4), gather_of(4), scatter_of(4), scatter_of(4)}));
  plan.units.backward_prefetch = BackwardPrefetch::kPost;
  EXPECT_EQ(transfers_of(plan), with({gather_of(4), gather_of(4), scatter_of(4), scatter_of(4)}));
  plan.units.backward_prefetch = BackwardPrefetch::kNone;
  EXPECT_EQ(transfers_of(plan), with({gather_of(4), scatter_of(4), gather_of(4), scatter_of(4)}));
}

/// Gathering later can only take longer, and fewer gathered units less memory.
TEST(ShardedUnits, TradeTimeForMemory) {
  const auto run = [](const plan::ShardUnits& units) {
    ParallelPlan plan = sharded_plan(Sharding::kZero3, 2);
    plan.units = units;
    const Seconds step = engine::make_ideal_executor()
                             ->run(tests::make_job(gpt({kLayers}), tests::round_cluster(), plan))
                             .step_time;
    const memory::Profile profile = tests::memory_of(gpt({kLayers}), plan).front();
    return std::pair(step, tests::of(profile.largest, MemoryCategory::kCommunicationBuffers));
  };
  using enum plan::BackwardPrefetch;
  const auto [pre, pre_bytes] = run({1, 0, 2, kPre});
  const auto [post, post_bytes] = run({1, 0, 2, kPost});
  const auto [none, none_bytes] = run({1, 0, 2, kNone});
  const auto [single, single_bytes] = run({1, 0, 1, kNone});
  EXPECT_LT(pre, post);
  EXPECT_LT(post, none);
  EXPECT_LT(none, single);
  EXPECT_GE(pre_bytes, post_bytes);
  EXPECT_GE(none_bytes, single_bytes);
  // Six gathered layers in forward are more than two and one whose gradients are scattered (4 bytes) in
  // backward.
  EXPECT_EQ(run({1, 0, 6, kPre}).second - pre_bytes, (6 * 2 - (2 * 2 + 4)) * kLayer);
  // Nothing is gathered while anything computes: all gathers of forward and backward are waited for.
  EXPECT_GT(single - pre, 2 * 2 * (kLayers - 1) * 0.75 * 2.0 * kLayer / 100e9);
}

TEST(ShardedUnits, DoNothingOnOneDataParallelRank) {
  ParallelPlan plan = split_plan({});
  plan.sharding = Sharding::kZero3;
  EXPECT_TRUE(transfers_of(plan).empty());
}

/// Rajbhandari et al. 2020: 2 P + (4 + 12) P / d with ZeRO-2, (2 + 4 + 12) P / d with ZeRO-3 and fp32
/// gradients.
TEST(ShardedUnits, LeaveAShardOfTheState) {
  const auto state = [](Sharding sharding, MemoryCategory category) {
    Bytes bytes = 0;
    const Program program = programs_of(gpt({kLayers}), sharded_plan(sharding)).front();
    for (const Instruction& each : program.stream(Stream::kCompute)) {
      if (each.op == program::Opcode::kSlotBegin) break;
      if (each.op == program::Opcode::kAllocate && each.memory == category)
        bytes += static_cast<Bytes>(each.amount);
    }
    return bytes;
  };
  constexpr Bytes kAll = kLayers * kLayer + kRoot;
  EXPECT_EQ(state(Sharding::kZero2, MemoryCategory::kParameters), 2 * kAll);
  EXPECT_EQ(state(Sharding::kZero2, MemoryCategory::kMainGradients), 4 * kAll / 4);
  EXPECT_EQ(state(Sharding::kZero3, MemoryCategory::kParameters), 2 * kAll / 4);
  EXPECT_EQ(state(Sharding::kZero3, MemoryCategory::kMainGradients), 4 * kAll / 4);
  EXPECT_EQ(state(Sharding::kZero3, MemoryCategory::kOptimizerState), 12 * kAll / 4);
}

TEST(ShardedUnits, FreeWhatTheyGather) {
  for (const Sharding sharding : {Sharding::kZero2, Sharding::kZero3}) {
    const program::MemoryByCategory left =
        tests::memory_of(gpt({kLayers}), sharded_plan(sharding, 2)).front().at_end;
    EXPECT_EQ(tests::of(left, MemoryCategory::kCommunicationBuffers), 0);
    EXPECT_EQ(tests::of(left, MemoryCategory::kGradients), 0);
    EXPECT_EQ(tests::of(left, MemoryCategory::kMainGradients), 4 * (kLayers * kLayer + kRoot) / 4);
  }
}

/// The toy GPU leaves nothing to collectives, so with free communication sharding changes nothing but the
/// optimizer's share.
TEST(ShardedUnits, ComputeAsMuchAsWithoutSharding) {
  const auto busy = [](Sharding sharding) {
    return tests::run_free(gpt({kLayers}), sharded_plan(sharding, 2)).ranks.front().busy;
  };
  EXPECT_NEAR(busy(Sharding::kZero3), busy(Sharding::kNone), 1e-12);
  EXPECT_NEAR(busy(Sharding::kZero2), busy(Sharding::kNone), 1e-12);
}

/// A quarter of the multiprocessors is taken for as long as a layer's 2-byte parameters are gathered over 4
/// ranks: 3/4 of 2 * kLayer bytes at 1 TB/s, without latency.
TEST(ShardedUnits, SlowComputingWhileTheyGather) {
  const ParallelPlan plan = sharded_plan(Sharding::kZero3);
  hardware::GpuSpec gpu = tests::round_cluster().gpu;
  gpu.communication_multiprocessors = gpu.multiprocessors / 4;
  const cost::KernelModel kernels = kernel_model(gpu, plan);
  const UnitLayer layer = {kLayer, kLayer, 0, {}};
  const Pass alone = layer_passes(gpt({kLayers}), plan, kernels, {}).forward;
  const auto seconds = [](const Pass& pass) {
    Seconds total = 0;
    for (const Step& step : pass) {
      for (const program::Kernel& kernel : step.kernels) total += kernel.seconds;
    }
    return total;
  };
  const Seconds gathering = 0.75 * 2.0 * static_cast<double>(kLayer) / 1e12;
  const auto beside = [&](BytesPerSecond rate) {
    return seconds(beside_forward_transfers(alone, plan, layer, {{rate}, {rate}}, kernels));
  };
  EXPECT_NEAR(beside(1e12) - seconds(alone), gathering / 4, 1e-15);
  // Over a slow network all of it runs beside a gather.
  EXPECT_NEAR(beside(1e6), seconds(alone) * 4 / 3, 1e-12);
}

TEST(ShardedUnits, WaitForEachScatterWithoutOverlap) {
  ParallelPlan plan = sharded_plan(Sharding::kZero3);
  const auto waits = [&plan] {
    int count = 0;
    const Program program = programs_of(gpt({kLayers}), plan).front();
    for (const Instruction& each : program.stream(Stream::kCompute)) {
      count += each.op == program::Opcode::kWait ? 1 : 0;
    }
    return count;
  };
  const int overlapped = waits();
  plan.overlap_gradient_reduction = false;
  EXPECT_EQ(waits(), overlapped + kLayers + 1);
}

/// Two stages of four layers; of three micro-batches the first stage runs F F B F B B, the last F B F B F B.
ParallelPlan pipelined_plan(Sharding sharding) {
  ParallelPlan plan = split_plan({1, 2, 1, 4}, 3);
  plan.sharding = sharding;
  plan.framework = plan::Framework::kFsdp;
  return plan;
}

constexpr std::int64_t kStageLayers = kLayers / 2;
/// 8192 words and 256 positions.
constexpr std::int64_t kEmbedding = (8192 + 256) * 512;

std::vector<Transfer> transfers_of_stage(const ParallelPlan& plan, std::size_t stage) {
  const Program program = programs_of(gpt({kLayers}), plan)[stage];
  std::vector<Transfer> transfers;
  for (const Instruction& each : tests::collectives(program, Stream::kData, GroupKind::kData)) {
    transfers.push_back({each.collective, each.amount});
  }
  return transfers;
}

TEST(ShardedUnits, OfAPipelineGatherAndScatterOnceWhenTheyStayGathered) {
  std::vector<Transfer> expected = {{CollectiveOp::kAllGather, 2.0 * kEmbedding}};
  expected.insert(expected.end(), kStageLayers, kGatherLayer);
  expected.insert(expected.end(), kStageLayers, kScatterLayer);
  expected.push_back({CollectiveOp::kReduceScatter, 4.0 * kEmbedding});
  EXPECT_EQ(transfers_of_stage(pipelined_plan(Sharding::kZero2), 0), expected);
}

/// The parameters that a backward has gathered serve the next forward, which drops them: the first stage
/// gathers for F F B, and B after the F between; the last one for F, and for each of three B.
TEST(ShardedUnits, OfAPipelineGatherAgainWhatForwardDropped) {
  const auto gathers = [](std::size_t stage) {
    const std::vector<Transfer> all = transfers_of_stage(pipelined_plan(Sharding::kZero3), stage);
    return std::count(all.begin(), all.end(), kGatherLayer);
  };
  EXPECT_EQ(gathers(0), kStageLayers * 4);
  EXPECT_EQ(gathers(1), kStageLayers * 4);
}

/// Stages without embedding or head have no root.
TEST(ShardedUnits, OfAStageInTheMiddleAreItsLayers) {
  ParallelPlan plan = split_plan({1, 4, 1, 4}, 4);
  plan.sharding = Sharding::kZero2;
  plan.framework = plan::Framework::kFsdp;
  std::vector<Transfer> expected(2, kGatherLayer);
  expected.insert(expected.end(), 2, kScatterLayer);
  EXPECT_EQ(transfers_of_stage(plan, 1), expected);
}

TEST(ShardedUnits, OfAPipelineAreThoseOfEachChunk) {
  ParallelPlan plan = split_plan({1, 2, 2, 4}, 4);
  plan.sharding = Sharding::kZero2;
  plan.framework = plan::Framework::kFsdp;
  const std::vector<Transfer> all = transfers_of_stage(plan, 0);
  EXPECT_EQ(std::count(all.begin(), all.end(), kGatherLayer), kStageLayers);
  EXPECT_EQ(std::count(all.begin(), all.end(), kScatterLayer), kStageLayers);
  // The second chunk is the last to begin and, as backward runs, the first to end.
  const auto end = std::find(all.begin(), all.end(), kScatterLayer);
  EXPECT_EQ(std::count(all.begin(), end, kGatherLayer), kStageLayers);
}

/// From the second backward on whole sums in fp32 are there: with the shard that the optimizer reads, the
/// embedding's gradient and that of the layer at hand in bf16.
TEST(ShardedUnits, OfAPipelineAddGradientsUpWhole) {
  const memory::Profile profile = tests::memory_of(gpt({kLayers}), pipelined_plan(Sharding::kZero2)).front();
  constexpr Bytes kStage = kStageLayers * kLayer + kEmbedding;
  EXPECT_EQ(tests::of(profile.largest, MemoryCategory::kGradients),
            4 * kStage / 4 + 4 * kStage + 2 * kEmbedding + 2 * kLayer);
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kGradients), 4 * kStage / 4);
  // Gathered, and at the end the sums of a unit beside the embedding's that is being sent.
  EXPECT_GE(tests::of(profile.largest, MemoryCategory::kCommunicationBuffers), 2 * kStage);
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kCommunicationBuffers), 0);
}

/// Twice three layers of eight experts on four ranks, two of which hold the same ones: their parameters are
/// gathered and scattered by those two, the rest of a layer by all four.
TEST(ShardedUnits, GatherExpertsFromTheRanksThatHoldThem) {
  model::ModelSpec model = gpt({3});
  model.dropout = 0;
  model.linear_bias = false;
  model.attention = model::Attention::kFlash;
  model.experts.count = 8;
  model.experts.per_token = 2;
  model.experts.intermediate_size = 1024;
  ParallelPlan plan = split_plan({1, 1, 1, 4}, 2);
  plan.framework = plan::Framework::kFsdp;
  plan.expert_parallel = 2;
  plan.sharding = Sharding::kZero3;
  // Four experts with weights of 512 x 1024 and back; attention, two norms and the router are shared.
  constexpr double kOwn = 4.0 * 2.0 * 512.0 * 1024.0;
  constexpr double kShared = 4.0 * 512.0 * 512.0 + 4.0 * 512.0 + 8.0 * 512.0;
  const Program program = programs_of(model, plan).front();
  const auto bytes = [&program](GroupKind group, CollectiveOp op) {
    double sum = 0;
    for (const Instruction& each : tests::collectives(program, Stream::kData, group)) {
      if (each.collective == op) sum += each.amount;
    }
    return sum;
  };
  EXPECT_EQ(bytes(GroupKind::kExpertData, CollectiveOp::kAllGather), 2 * 3 * 2 * 2.0 * kOwn);
  EXPECT_EQ(bytes(GroupKind::kExpertData, CollectiveOp::kReduceScatter), 2 * 3 * 4.0 * kOwn);
  EXPECT_EQ(bytes(GroupKind::kData, CollectiveOp::kAllGather), 2 * (3 * 2 * 2.0 * kShared + 2.0 * kRoot));
  EXPECT_EQ(bytes(GroupKind::kData, CollectiveOp::kReduceScatter), 2 * (3 * 4.0 * kShared + 4.0 * kRoot));
  const memory::Profile profile = tests::memory_of(model, plan).front();
  // Adam's two moments and fp32 parameters: a half of the experts', a quarter of the rest.
  const double sharded = 3.0 * kOwn / 2.0 + (3.0 * kShared + kRoot) / 4.0;
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kOptimizerState), static_cast<Bytes>(8.0 * sharded));
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kParameters), static_cast<Bytes>(4.0 * sharded));
  EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kGradients), static_cast<Bytes>(4.0 * sharded));
}

/// One data-parallel rank, whose experts are shared by the four tensor-parallel ranks in pairs: nothing but
/// experts is gathered and scattered, and their state is halved.
TEST(ShardedUnits, GatherExpertsThatTensorParallelRanksShare) {
  model::ModelSpec model = gpt({2});
  model.dropout = 0;
  model.attention = model::Attention::kFlash;
  model.experts.count = 8;
  model.experts.per_token = 2;
  model.experts.intermediate_size = 1024;
  ParallelPlan plan = split_plan({4, 1, 1, 1});
  plan.framework = plan::Framework::kFsdp;
  plan.sequence_parallel = true;
  plan.expert_tensor_parallel = 1;
  plan.expert_parallel = 2;
  plan.sharding = Sharding::kZero3;
  const Program program = programs_of(model, plan).front();
  EXPECT_TRUE(tests::collectives(program, Stream::kData, GroupKind::kData).empty());
  const auto experts = tests::collectives(program, Stream::kData, GroupKind::kExpertData);
  // Of two layers: gathered forward and backward, and scattered.
  EXPECT_EQ(experts.size(), 2U * 3U);
}

/// With GPipe's schedule the first unit of a later forward is not gathered before that forward begins.
TEST(ShardedUnits, GatherTheFirstUnitWhenItsForwardBegins) {
  ParallelPlan plan = sharded_plan(Sharding::kZero3, 2);
  plan.schedule = plan::ScheduleKind::kGpipe;
  plan.framework = plan::Framework::kFsdp;
  plan.units = {1, 0, 1, plan::BackwardPrefetch::kNone};
  const Program program = programs_of(gpt({1}), plan).front();
  int waits = 0;
  int gathers = 0;
  for (const Instruction& each : program.stream(Stream::kData)) {
    waits += each.op == program::Opcode::kWait ? 1 : 0;
    if (each.op != program::Opcode::kCollective || each.collective != CollectiveOp::kAllGather) continue;
    // Of the root and of the layer in the first forward, of the layer in the second.
    if (++gathers == 3) break;
  }
  EXPECT_EQ(gathers, 3);
  EXPECT_EQ(waits, 2);
}

}  // namespace
}  // namespace trainsim::lowering
