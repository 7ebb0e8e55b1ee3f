// SPDX-License-Identifier: Apache-2.0
// Attention of ranks that share a sequence. s sequence, b micro-batch, h hidden, c context parallel, a query
// heads, g key/value heads, d width of a head; elements of 2 bytes.
#include "sim/lowering/context_attention.hpp"

#include <array>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "sim/lowering/layer.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "sim/lowering/state.hpp"
#include "sim/program/job.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ContextCommunication;
using plan::ParallelPlan;
using program::CollectiveOp;
using program::GroupKind;

constexpr std::array<ContextCommunication, 3> kWays = {
    ContextCommunication::kP2p, ContextCommunication::kAllGather, ContextCommunication::kAllToAll};

/// s = 1024, h = 512, a = 8, g = 4, d = 64.
model::ModelSpec long_gpt() {
  model::ModelSpec model = tests::gpt({1, 512, 8, 8192, 1024});
  model.num_key_value_heads = 4;
  model.attention = model::Attention::kFlash;
  model.position_embedding = model::PositionEmbedding::kRotary;
  model.dropout = 0;
  return model;
}

/// b = 2.
ParallelPlan context_plan(std::int64_t ranks, ContextCommunication way = ContextCommunication::kP2p) {
  ParallelPlan plan = tests::split_plan({}, 1, 2);
  plan.context_parallel = plan.gpus = ranks;
  plan.context_communication = way;
  return plan;
}

LayerPasses passes_of(const ParallelPlan& plan) {
  return layer_passes(long_gpt(), plan, kernel_model(tests::round_cluster().gpu, plan), {100e9}, {100e9});
}

/// Bytes of the context-parallel collectives of a pass, in order; all must be of one kind unless told.
std::vector<double> exchanged(const Pass& pass, CollectiveOp op) {
  std::vector<double> bytes;
  for (const Step& step : pass) {
    const bool communicates = step.kind == StepKind::kCollective || step.kind == StepKind::kStartCollective;
    if (!communicates || step.op != op) continue;
    EXPECT_EQ(step.group, GroupKind::kContext);
    EXPECT_EQ(step.cause, program::Cause::kContextCommunication);
    bytes.push_back(step.bytes);
  }
  return bytes;
}

Flops flops_of(const Pass& pass) {
  Flops total = 0;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) total += kernel.flops;
  }
  return total;
}

/// Keys and values of a rank: 2 b (s/c) g d elements; c = 4.
constexpr double kPair = 2.0 * 2 * 256 * 4 * 64 * 2;
/// Its queries: b (s/c) a d.
constexpr double kQueries = 2.0 * 256 * 8 * 64 * 2;

TEST(ContextAttention, PassesKeysAndValuesOnAndTheirGradientsAStepLater) {
  const LayerPasses passes = passes_of(context_plan(4));
  EXPECT_EQ(exchanged(passes.forward, CollectiveOp::kRingShift), (std::vector{kPair, kPair, kPair}));
  EXPECT_EQ(exchanged(passes.backward, CollectiveOp::kRingShift),
            (std::vector{kPair, 2 * kPair, 2 * kPair, kPair}));
}

TEST(ContextAttention, PassesOnBesideAttention) {
  for (const Pass& pass : {passes_of(context_plan(4)).forward, passes_of(context_plan(4)).backward}) {
    int on_the_way = 0;
    for (const Step& step : pass) {
      if (step.kind == StepKind::kStartCollective) ++on_the_way;
      if (step.kind == StepKind::kJoin) --on_the_way;
      EXPECT_NE(step.kind, StepKind::kCollective);
      const bool attends = step.name.find("own part") != std::string::npos ||
                           step.name.find("another rank") != std::string::npos;
      if (attends) {
        EXPECT_LE(on_the_way, 1);
      }
    }
    EXPECT_EQ(on_the_way, 0);
  }
}

TEST(ContextAttention, GathersKeysAndValuesAndScattersTheirGradients) {
  const LayerPasses passes = passes_of(context_plan(4, ContextCommunication::kAllGather));
  EXPECT_EQ(exchanged(passes.forward, CollectiveOp::kAllGather), (std::vector{4 * kPair}));
  EXPECT_EQ(exchanged(passes.backward, CollectiveOp::kAllGather), (std::vector{4 * kPair}));
  EXPECT_EQ(exchanged(passes.backward, CollectiveOp::kReduceScatter), (std::vector{4 * kPair}));
}

TEST(ContextAttention, ExchangesHeadsForTokens) {
  const LayerPasses passes = passes_of(context_plan(4, ContextCommunication::kAllToAll));
  EXPECT_EQ(exchanged(passes.forward, CollectiveOp::kAllToAll), (std::vector{kQueries + kPair, kQueries}));
  EXPECT_EQ(exchanged(passes.backward, CollectiveOp::kAllToAll), (std::vector{kQueries, kQueries + kPair}));
}

/// Jacobs et al. 2023, section 3.2: 4 N h / P elements of a forward pass with as many key as query heads.
TEST(ContextAttention, ExchangesThePublishedVolume) {
  model::ModelSpec model = long_gpt();
  model.num_key_value_heads = model.num_attention_heads;
  const ParallelPlan plan = context_plan(4, ContextCommunication::kAllToAll);
  const LayerPasses passes =
      layer_passes(model, plan, kernel_model(tests::round_cluster().gpu, plan), {100e9}, {100e9});
  const std::vector<double> bytes = exchanged(passes.forward, CollectiveOp::kAllToAll);
  EXPECT_DOUBLE_EQ(std::accumulate(bytes.begin(), bytes.end(), 0.0), 4.0 * (2.0 * 1024) * 512 / 4 * 2);
}

TEST(ContextAttention, NeedsNoExchangeAlone) {
  const LayerPasses passes = passes_of(context_plan(1));
  for (const Pass& pass : {passes.forward, passes.backward}) {
    for (const Step& step : pass) EXPECT_EQ(step.kind, StepKind::kCompute);
  }
}

/// However a sequence is shared, all ranks together do what one rank does alone.
TEST(ContextAttention, SharesTheOperations) {
  const LayerPasses alone = passes_of(context_plan(1));
  for (const ContextCommunication way : kWays) {
    for (const std::int64_t ranks : {2, 4}) {
      const LayerPasses passes = passes_of(context_plan(ranks, way));
      const auto count = static_cast<double>(ranks);
      EXPECT_DOUBLE_EQ(count * flops_of(passes.forward), flops_of(alone.forward)) << to_string(way);
      EXPECT_DOUBLE_EQ(count * flops_of(passes.backward), flops_of(alone.backward)) << to_string(way);
    }
  }
}

TEST(ContextAttention, IsRepeatedByRecomputationWithItsExchange) {
  for (const ContextCommunication way : kWays) {
    ParallelPlan plan = context_plan(4, way);
    const auto before = flops_of(passes_of(plan).backward);
    plan.recompute.granularity = plan::RecomputeGranularity::kSelective;
    const LayerPasses passes = passes_of(plan);
    // Forward has two of attention's multiplies, 4 b (s/c) s a d operations.
    EXPECT_DOUBLE_EQ(flops_of(passes.backward) - before, 4.0 * 2 * 256 * 1024 * 8 * 64);
  }
  ParallelPlan plan = context_plan(4);
  plan.recompute.granularity = plan::RecomputeGranularity::kSelective;
  EXPECT_EQ(exchanged(passes_of(plan).backward, CollectiveOp::kRingShift).size(), 3U + 4U);
}

TEST(ContextAttention, KeepsItsShareOfActivations) {
  const Bytes alone = layer_tape(long_gpt(), context_plan(1)).kept();
  for (const ContextCommunication way : kWays)
    EXPECT_EQ(4 * layer_tape(long_gpt(), context_plan(4, way)).kept(), alone);
}

/// Transformer Engine's ring keeps b (s/c) a d elements more: what its peaks have of SimuMax's runs on B200.
TEST(ContextAttention, KeepsACopyInTransformerEngine) {
  ParallelPlan plan = context_plan(4);
  const Bytes plain = layer_tape(long_gpt(), plan).kept();
  plan.transformer_engine = true;
  EXPECT_EQ(layer_tape(long_gpt(), plan).kept() - plain, static_cast<Bytes>(kQueries));
  plan.context_communication = ContextCommunication::kAllToAll;
  EXPECT_EQ(layer_tape(long_gpt(), plan).kept(), plain);
}

Bytes exchange_buffers(const MemoryTrace& trace) {
  Bytes bytes = 0;
  for (const MemoryChange& change : trace) {
    if (change.allocates && change.category == program::MemoryCategory::kCommunicationBuffers)
      bytes += change.bytes;
  }
  return bytes;
}

/// The ring receives c - 1 times, beside a copy of the rank's own keys and values; backward has two buffers
/// for both and for their gradients, of which the tape counts the last as the gradient itself.
TEST(ContextAttention, HoldsBuffersWhileItRuns) {
  const auto pair = static_cast<Bytes>(kPair);
  const auto queries = static_cast<Bytes>(kQueries);
  const Tape ring = layer_tape(long_gpt(), context_plan(4));
  EXPECT_EQ(exchange_buffers(ring.forward()), 4 * pair);
  EXPECT_EQ(exchange_buffers(ring.backward()), 3 * pair);
  const Tape gathered = layer_tape(long_gpt(), context_plan(4, ContextCommunication::kAllGather));
  EXPECT_EQ(exchange_buffers(gathered.forward()), 4 * pair + 4 * pair / 2);
  EXPECT_EQ(exchange_buffers(gathered.backward()), 2 * 4 * pair);
  const Tape exchanged = layer_tape(long_gpt(), context_plan(4, ContextCommunication::kAllToAll));
  EXPECT_EQ(exchange_buffers(exchanged.forward()), 2 * queries + pair);
  EXPECT_EQ(exchange_buffers(exchanged.backward()), 2 * queries + pair);
}

Bytes optimizer_bytes(const ParallelPlan& plan) {
  Bytes bytes = 0;
  for (const StateTensor& tensor : state_tensors(long_gpt(), plan, 0)) {
    if (tensor.category == program::MemoryCategory::kOptimizerState) bytes += tensor.bytes;
  }
  return bytes;
}

/// Parameters are whole on every rank, and the optimizer's state is shared by all of them, as by as many
/// data-parallel ranks.
TEST(ContextAttention, SharesTheOptimizerWithDataParallelRanks) {
  ParallelPlan context = context_plan(4);
  context.data_parallel = 2;
  context.gpus = 8;
  context.sharding = plan::Sharding::kZero1;
  ParallelPlan data = tests::split_plan({1, 1, 1, 8});
  data.sharding = plan::Sharding::kZero1;
  EXPECT_EQ(context.shard_ranks(), 8);
  EXPECT_EQ(optimizer_bytes(context), optimizer_bytes(data));
  EXPECT_EQ(stage_parameters(long_gpt(), context, 0), stage_parameters(long_gpt(), data, 0));
}

/// One rank's gradients are reduced with those of all that hold the same parameters.
TEST(ContextAttention, ReducesGradientsOverContextRanks) {
  const std::vector<program::Program> programs = tests::programs_of(long_gpt(), context_plan(4));
  double reduced = 0;
  for (const program::Instruction& instruction : programs.front().stream(program::Stream::kData)) {
    if (instruction.op != program::Opcode::kCollective) continue;
    EXPECT_EQ(instruction.group, GroupKind::kData);
    reduced += instruction.amount;
  }
  EXPECT_DOUBLE_EQ(reduced, 4.0 * static_cast<double>(stage_parameters(long_gpt(), context_plan(4), 0)));
}

/// A part without a mask has half of the keys, and so as much work as a causal square: without overheads and
/// uneven tiles equally long. Gathered keys are c times as many.
TEST(ContextAttention, TakesAsLongAsItsShareOfTheSquare) {
  hardware::GpuSpec gpu = tests::round_cluster().gpu;
  gpu.kernel_overhead = gpu.attention_overhead = 0;
  gpu.multiprocessors = 1;
  const cost::KernelModel kernels(gpu, 100e12, 2, 0);
  const std::int64_t s = 1 << 16;
  const cost::AttentionShape square = {1, s, 8, 8, 128, 128};
  cost::AttentionShape part = square;
  part.keys = s / 2;
  part.causal = false;
  cost::AttentionShape gathered = square;
  gathered.keys = 4 * s;
  for (const bool backward : {false, true}) {
    const auto time = [&](const cost::AttentionShape& shape) {
      return (backward ? kernels.attention_backward("a", shape) : kernels.attention_forward("a", shape))
          .seconds;
    };
    EXPECT_NEAR(time(part) / time(square), 1.0, 0.01);
    EXPECT_NEAR(time(gathered) / time(square), 4.0, 0.04);
  }
}

}  // namespace
}  // namespace trainsim::lowering
