// SPDX-License-Identifier: Apache-2.0
// Communication and operations of a layer, and operations of a step. s sequence, b micro-batch, h hidden, L
// layers, V vocabulary, t tensor parallel, B global batch.
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include "sim/lowering/ends.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/program/job.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using plan::RecomputeGranularity;
using program::CollectiveOp;
using tests::gpt;
using tests::split_plan;

/// A collective of a pass, in order.
struct Transfer {
  CollectiveOp op;
  double bytes;
  bool operator==(const Transfer&) const = default;
  friend void PrintTo(const Transfer& transfer, std::ostream* out) {
    *out << to_string(transfer.op) << " of " << transfer.bytes << " bytes";
  }
};
using Transfers = std::vector<Transfer>;

Transfers transfers_of(const Pass& pass) {
  Transfers transfers;
  for (const Step& step : pass) {
    if (step.kind == StepKind::kCollective || step.kind == StepKind::kStartCollective) {
      transfers.push_back({step.op, step.bytes});
    }
  }
  return transfers;
}

Flops flops_of(const Pass& pass) {
  Flops total = 0;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) total += kernel.flops;
  }
  return total;
}

LayerPasses passes_of(const model::ModelSpec& model, const ParallelPlan& plan) {
  return layer_passes(model, plan, kernel_model(tests::round_cluster().gpu, plan), {100e9});
}

/// h = 512, s = 256, b = 2: a residual-stream tensor of b s h elements of 2 bytes.
constexpr double kTensorBytes = 2.0 * 256 * 512 * 2;
constexpr Transfer kReduce = {CollectiveOp::kAllReduce, kTensorBytes};
constexpr Transfer kGather = {CollectiveOp::kAllGather, kTensorBytes};
constexpr Transfer kScatter = {CollectiveOp::kReduceScatter, kTensorBytes};

ParallelPlan tensor_plan(std::int64_t tensor, bool sequence) {
  ParallelPlan plan = split_plan({tensor}, 1, 2);
  plan.sequence_parallel = sequence;
  return plan;
}

TEST(LayerCommunication, IsNoneOnOneRank) {
  for (const bool sequence : {false, true}) {
    const LayerPasses passes = passes_of(gpt({}), tensor_plan(1, sequence));
    EXPECT_TRUE(transfers_of(passes.forward).empty());
    EXPECT_TRUE(transfers_of(passes.backward).empty());
    EXPECT_TRUE(transfers_of(passes.recompute).empty());
  }
}

TEST(LayerCommunication, IsTwoAllReducesEachWay) {
  const LayerPasses passes = passes_of(gpt({}), tensor_plan(4, false));
  EXPECT_EQ(transfers_of(passes.forward), (Transfers{kReduce, kReduce}));
  EXPECT_EQ(transfers_of(passes.backward), (Transfers{kReduce, kReduce}));
}

/// Forward gathers before each column-parallel layer and scatters after each row-parallel one. Backward
/// gathers the gradient before each row-parallel layer, gathers the saved input again for the weight gradient
/// of each column-parallel one, and scatters its input gradient.
TEST(LayerCommunication, IsGathersAndScattersWithSequenceParallelism) {
  const LayerPasses passes = passes_of(gpt({}), tensor_plan(4, true));
  EXPECT_EQ(transfers_of(passes.forward), (Transfers{kGather, kScatter, kGather, kScatter}));
  EXPECT_EQ(transfers_of(passes.backward),
            (Transfers{kGather, kGather, kScatter, kGather, kGather, kScatter}));
}

TEST(LayerCommunication, IsTheSameWithoutOverlapButWaitedFor) {
  for (const bool sequence : {false, true}) {
    ParallelPlan plan = tensor_plan(4, sequence);
    const Transfers overlapped = transfers_of(passes_of(gpt({}), plan).backward);
    plan.overlap_tensor_communication = false;
    const Pass backward = passes_of(gpt({}), plan).backward;
    EXPECT_EQ(transfers_of(backward), overlapped);
    for (const Step& step : backward) {
      EXPECT_TRUE(step.kind == StepKind::kCompute || step.kind == StepKind::kCollective);
    }
  }
}

TEST(LayerCommunication, HidesTheInputGradientsReductionOnlyInBackward) {
  const LayerPasses passes = passes_of(gpt({}), tensor_plan(4, false));
  int started = 0;
  int joined = 0;
  for (const Step& step : passes.backward) {
    started += step.kind == StepKind::kStartCollective ? 1 : 0;
    joined += step.kind == StepKind::kJoin ? 1 : 0;
    EXPECT_GE(started, joined);
  }
  EXPECT_EQ(started, 2);
  EXPECT_EQ(joined, 2);
  for (const Step& step : passes.forward) {
    EXPECT_TRUE(step.kind == StepKind::kCompute || step.kind == StepKind::kCollective);
  }
}

/// Narayanan et al., SC'21, section 3.2: 8 b s h (t-1)/t elements per layer, micro-batch and device. With
/// sequence parallelism as many, but for two more all-gathers of b s h (t-1)/t each.
TEST(LayerCommunication, SendsThePublishedVolume) {
  for (const std::int64_t t : {2, 4, 8}) {
    const double share = static_cast<double>(t - 1) / static_cast<double>(t);
    for (const bool sequence : {false, true}) {
      const LayerPasses passes = passes_of(gpt({}), tensor_plan(t, sequence));
      double sent = 0;
      for (const Pass& pass : {passes.forward, passes.backward}) {
        for (const auto& [op, bytes] : transfers_of(pass)) sent += program::bytes_per_member(op, t, bytes);
      }
      EXPECT_DOUBLE_EQ(sent, (sequence ? 10.0 : 8.0) * kTensorBytes * share) << "t = " << t;
    }
  }
}

TEST(LayerCommunication, IsRepeatedByFullRecomputation) {
  for (const bool sequence : {false, true}) {
    ParallelPlan plan = tensor_plan(4, sequence);
    plan.recompute.granularity = RecomputeGranularity::kFull;
    const LayerPasses passes = passes_of(gpt({}), plan);
    EXPECT_EQ(transfers_of(passes.recompute), transfers_of(passes.forward));
    EXPECT_EQ(transfers_of(passes.backward),
              transfers_of(passes_of(gpt({}), tensor_plan(4, sequence)).backward));
  }
}

TEST(LayerCommunication, IsNotRepeatedBySelectiveRecomputation) {
  ParallelPlan plan = tensor_plan(4, true);
  const Transfers plain = transfers_of(passes_of(gpt({}), plan).backward);
  plan.recompute.granularity = RecomputeGranularity::kSelective;
  EXPECT_EQ(transfers_of(passes_of(gpt({}), plan).backward), plain);
}

/// Embedding rows and logits are split by vocabulary. The loss exchanges maximum, target logit and sum of
/// exponentials: an fp32 number per token each.
class EndsCommunication : public testing::Test {
 protected:
  static Ends ends_of(const ParallelPlan& plan) {
    return build_ends(gpt({}), plan, kernel_model(tests::round_cluster().gpu, plan), {100e9});
  }
  static constexpr Transfer kPerToken = {CollectiveOp::kAllReduce, 4.0 * 2 * 256};
};

TEST_F(EndsCommunication, IsNoneOnOneRank) {
  const Ends ends = ends_of(tensor_plan(1, false));
  for (const Pass& pass :
       {ends.embedding_forward, ends.embedding_backward, ends.head_forward, ends.head_backward}) {
    EXPECT_TRUE(transfers_of(pass).empty());
  }
}

TEST_F(EndsCommunication, ReducesEmbeddingsAndInputGradientsOfTheHead) {
  const Ends ends = ends_of(tensor_plan(4, false));
  EXPECT_EQ(transfers_of(ends.embedding_forward), Transfers{kReduce});
  EXPECT_EQ(transfers_of(ends.embedding_backward), Transfers{});
  EXPECT_EQ(transfers_of(ends.head_forward), (Transfers{kPerToken, kPerToken, kPerToken}));
  EXPECT_EQ(transfers_of(ends.head_backward), Transfers{kReduce});
}

TEST_F(EndsCommunication, ScattersAndGathersWithSequenceParallelism) {
  const Ends ends = ends_of(tensor_plan(4, true));
  EXPECT_EQ(transfers_of(ends.embedding_forward), Transfers{kScatter});
  EXPECT_EQ(transfers_of(ends.embedding_backward), Transfers{kGather});
  EXPECT_EQ(transfers_of(ends.head_forward), (Transfers{kGather, kPerToken, kPerToken, kPerToken}));
}

/// The head is a column-parallel layer like those of the layers: of its input only a shard is kept (4 s b h /
/// t with that of the final norm), so it is gathered again for the weight gradient.
TEST_F(EndsCommunication, GathersTheHeadsSavedInputAgain) {
  const Ends ends = ends_of(tensor_plan(4, true));
  EXPECT_EQ(transfers_of(ends.head_backward), (Transfers{kGather, kScatter}));
}

/// The gradient of an embedding is read in compute precision, and its rows are read and written in gradient
/// precision.
TEST_F(EndsCommunication, EmbeddingGradientMovesEachPrecisionsBytes) {
  ParallelPlan plan = tensor_plan(1, false);
  const auto bytes = [&plan] {
    double total = 0;
    for (const Step& step : ends_of(plan).embedding_backward) {
      for (const program::Kernel& kernel : step.kernels) total += kernel.bytes;
    }
    return total;
  };
  // b s h = 2 * 256 * 512 elements: 2 + 2 * 4 bytes, or 4 + 2 * 4 in fp32.
  EXPECT_EQ(bytes(), 262'144.0 * 10);
  plan.precision = plan::Precision::kFp32;
  EXPECT_EQ(bytes(), 262'144.0 * 12);
}

/// Stored in fp32, multiplied at a peak of its own: 8 times that of fp32 here, with the same traffic.
TEST(Precision, Tf32MultipliesFasterAndMovesAsMuchAsFp32) {
  hardware::GpuSpec gpu = tests::round_cluster().gpu;
  gpu.peak_tf32 = 8 * gpu.peak_fp32;
  ParallelPlan plan = tensor_plan(1, false);
  const cost::MatmulShape large = {1, 8192, 8192, 8192};
  plan.precision = plan::Precision::kFp32;
  const cost::KernelModel single = kernel_model(gpu, plan);
  plan.precision = plan::Precision::kTf32;
  const cost::KernelModel tensor = kernel_model(gpu, plan);
  const auto compute = [&gpu, &large](const cost::KernelModel& kernels) {
    return kernels.matmul("multiply", large).seconds - gpu.kernel_overhead;
  };
  EXPECT_NEAR(compute(single) / compute(tensor), 8.0, 1e-9);
  EXPECT_EQ(single.element_bytes(), 4);
  EXPECT_EQ(tensor.element_bytes(), 4);
}

/// Forward: 24 b s h^2 (1 + s/6h) / t; backward computes two gradients for every product.
TEST(LayerFlops, OfAGptFollowTheFormula) {
  for (const auto attention : {model::Attention::kStandard, model::Attention::kFlash}) {
    model::ModelSpec model = gpt({});
    model.attention = attention;
    for (const std::int64_t t : {1, 2, 8}) {
      const LayerPasses passes = passes_of(model, tensor_plan(t, false));
      // 24 * 2 * 256 * 512^2 (1 + 256 / 3072) / t = 3,221,225,472 * 13 / 12 / t.
      const double forward = 3'489'660'928.0 / static_cast<double>(t);
      EXPECT_DOUBLE_EQ(flops_of(passes.forward), forward) << "t = " << t;
      EXPECT_DOUBLE_EQ(flops_of(passes.backward), 2 * forward) << "t = " << t;
      EXPECT_DOUBLE_EQ(flops_of(passes.recompute), forward) << "t = " << t;
    }
  }
}

/// Queries and output 2 h^2 each, keys and values 2 h * 128 each (2 of 8 heads of 64), three products with an
/// inner width of 1024, attention 4 s h: per token 2 * (2 * 512^2 + 2 * 512 * 128 + 3 * 512 * 1024) + 4 * 256
/// * 512.
TEST(LayerFlops, OfAGatedLayerWithGroupedQueriesByHand) {
  model::ModelSpec model = gpt({});
  model.num_key_value_heads = 2;
  model.activation = model::Activation::kSwiglu;
  model.intermediate_size = 1024;
  const LayerPasses passes = passes_of(model, tensor_plan(1, false));
  const double per_token = 2.0 * (524'288 + 131'072 + 1'572'864) + 524'288;
  EXPECT_DOUBLE_EQ(flops_of(passes.forward), 512 * per_token);
  EXPECT_DOUBLE_EQ(flops_of(passes.backward), 2 * 512 * per_token);
}

/// The attention core, 4 b s^2 h / t, runs again inside backward; nothing else does.
TEST(LayerFlops, OfSelectiveRecomputationAreTheAttentionCores) {
  ParallelPlan plan = tensor_plan(2, true);
  const Flops plain = flops_of(passes_of(gpt({}), plan).backward);
  plan.recompute.granularity = RecomputeGranularity::kSelective;
  const LayerPasses passes = passes_of(gpt({}), plan);
  const double core = 4.0 * 2 * 256 * 256 * 512 / 2;
  EXPECT_DOUBLE_EQ(flops_of(passes.backward), plain + core);
  Flops recomputed = 0;
  for (const Step& step : passes.backward) {
    if (step.cause != program::Cause::kRecompute) continue;
    for (const program::Kernel& kernel : step.kernels) recomputed += kernel.flops;
  }
  EXPECT_DOUBLE_EQ(recomputed, core);
}

/// Operations of a step on all ranks.
struct StepFlops {
  Flops all = 0;
  Flops recomputed = 0;
};

/// L = 8, h = 512, s = 256, V = 8192 (which needs no padding); B = 16 in micro-batches of 2 on t = 2, p = 4,
/// d = 2.
StepFlops step_flops(RecomputeGranularity granularity, model::Attention attention) {
  ParallelPlan plan = split_plan({2, 4, 1, 2}, 4, 2);
  plan.sequence_parallel = true;
  plan.recompute.granularity = granularity;
  model::ModelSpec model = gpt({8});
  model.attention = attention;
  StepFlops flops;
  for (const program::Program& program : tests::programs_of(model, plan)) {
    flops.all += 2 * 2 * program.flops;
    flops.recomputed += 2 * 2 * program.recomputed_flops;
  }
  return flops;
}

constexpr double kL = 8;
constexpr double kH = 512;
constexpr double kS = 256;
constexpr double kV = 8192;
constexpr double kB = 16;
constexpr double kMatrices = kB * kS * kL * kH * kH;

class StepFlopsOf : public testing::TestWithParam<model::Attention> {};

/// 72 B L s h^2 (1 + s/6h + V/12hL), as counted by model::model_flops.
TEST_P(StepFlopsOf, AStepWithoutRecomputationAreTheModels) {
  const StepFlops flops = step_flops(RecomputeGranularity::kNone, GetParam());
  const double formula = 72 * kMatrices * (1 + kS / (6 * kH) + kV / (12 * kH * kL));
  EXPECT_NEAR(flops.all, formula, 1e-12 * formula);
  EXPECT_NEAR(flops.all, model::model_flops(gpt({8}), kB), 1e-12 * formula);
  EXPECT_EQ(flops.recomputed, 0);
}

/// 96 B s L h^2 (1 + s/6h + V/16Lh): SC'21, with all layers forward once more, and the head not.
TEST_P(StepFlopsOf, FullRecomputationFollowSc21) {
  const StepFlops flops = step_flops(RecomputeGranularity::kFull, GetParam());
  const double formula = 96 * kMatrices * (1 + kS / (6 * kH) + kV / (16 * kL * kH));
  EXPECT_NEAR(flops.all, formula, 1e-12 * formula);
  EXPECT_NEAR(flops.recomputed, 24 * kMatrices * (1 + kS / (6 * kH)), 1e-12 * formula);
}

/// The core's two products, 4 B s^2 h per layer, run once more: s/18h of 72 B L s h^2. Together with the
/// model's own s/6h that is 2s/9h.
TEST_P(StepFlopsOf, SelectiveRecomputationCountTheCoreOnceMore) {
  const StepFlops flops = step_flops(RecomputeGranularity::kSelective, GetParam());
  const double formula = 72 * kMatrices * (1 + 2 * kS / (9 * kH) + kV / (12 * kH * kL));
  EXPECT_NEAR(flops.all, formula, 1e-12 * formula);
  EXPECT_NEAR(flops.recomputed, 4 * kB * kS * kS * kH * kL, 1e-12 * formula);
}

/// Korthikanti et al. 2022, appendix A, print s/3h: for the recomputed core as much as for its forward and
/// backward together, 12 B s^2 h per layer instead of 4. So theirs is what was executed plus twice the
/// recomputation.
TEST_P(StepFlopsOf, SelectiveRecomputationAreFewerThanKorthikantis) {
  const StepFlops flops = step_flops(RecomputeGranularity::kSelective, GetParam());
  const double published = 72 * kMatrices * (1 + kS / (3 * kH) + kV / (12 * kH * kL));
  EXPECT_NEAR(flops.all + 2 * flops.recomputed, published, 1e-12 * published);
}

INSTANTIATE_TEST_SUITE_P(Attention, StepFlopsOf,
                         testing::Values(model::Attention::kStandard, model::Attention::kFlash),
                         [](const auto& tested) {
                           return tested.param == model::Attention::kFlash ? "flash" : "standard";
                         });

}  // namespace
}  // namespace trainsim::lowering
