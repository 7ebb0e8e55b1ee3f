// SPDX-License-Identifier: Apache-2.0
// Linear layers that multiply in 8 bits, by hand: what copies move, what is kept, held and gathered. s
// sequence, b micro-batch, h hidden, L layers, t tensor.
#include "sim/lowering/fp8.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/lowering/layer.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "sim/lowering/state.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::Fp8Recipe;
using plan::ParallelPlan;
using program::CollectiveOp;
using program::GroupKind;
using tests::gpt;
using tests::Split;
using tests::split_plan;

constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kTokens = 256;
constexpr std::int64_t kSbh = kTokens * kHidden;
constexpr std::int64_t kLayers = 4;
/// qkv 3h^2, output h^2, MLP 4h^2 and 4h^2.
constexpr std::int64_t kLayerWeights = 12 * kHidden * kHidden;

hardware::GpuSpec fp8_gpu() {
  hardware::GpuSpec gpu = tests::round_cluster().gpu;
  gpu.peak_fp8 = 2 * gpu.peak_bf16;
  return gpu;
}

ParallelPlan fp8_plan(const Split& split = {}, Fp8Recipe recipe = Fp8Recipe::kDelayed) {
  ParallelPlan plan = split_plan(split);
  plan.precision = plan::Precision::kFp8;
  plan.fp8.recipe = recipe;
  plan.transformer_engine = true;
  return plan;
}

model::ModelSpec model_of() {
  return gpt({kLayers, kHidden, 8, 8192, kTokens});
}

/// Kernels of a pass with a name.
std::vector<program::Kernel> kernels_of(const Pass& pass, const std::string& name) {
  std::vector<program::Kernel> found;
  for (const Step& step : pass) {
    std::copy_if(step.kernels.begin(), step.kernels.end(), std::back_inserter(found),
                 [&name](const program::Kernel& kernel) { return kernel.name == name; });
  }
  return found;
}

/// Bytes that kernels of a pass with a name move, divided by s b h, in order.
std::vector<double> moved_by(const Pass& pass, const std::string& name) {
  std::vector<double> bytes;
  for (const program::Kernel& kernel : kernels_of(pass, name))
    bytes.push_back(kernel.bytes / static_cast<double>(kSbh));
  return bytes;
}

std::vector<double> casts_of(const Pass& pass) {
  return moved_by(pass, "cast to 8 bits");
}

LayerPasses passes_of(const ParallelPlan& plan) {
  return layer_passes(model_of(), plan, kernel_model(fp8_gpu(), plan), {});
}

using Bytes64 = std::vector<double>;

TEST(Fp8, CopiesMoveWhatTheyReadAndWrite) {
  // One read, two copies; the whole tensor once more where its largest element is looked for; scales of
  // blocks.
  EXPECT_DOUBLE_EQ(cast_bytes(Fp8Recipe::kDelayed, 2, false), 2 + 2);
  EXPECT_DOUBLE_EQ(cast_bytes(Fp8Recipe::kTensorwise, 2, false), 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(cast_bytes(Fp8Recipe::kMxfp8, 2, false), 2 + 2 * (1 + 1.0 / 32));
  EXPECT_DOUBLE_EQ(cast_bytes(Fp8Recipe::kBlockwise, 2, false), 2 + 2 * (1 + 4.0 / 128));
  // While the tensor is made.
  EXPECT_DOUBLE_EQ(cast_bytes(Fp8Recipe::kRowwise, 1, true), 1);
  EXPECT_DOUBLE_EQ(cast_bytes(Fp8Recipe::kTensorwise, 1, true), 2 + 1);
}

TEST(Fp8, NormsOfTransformerEngineCastThemselves) {
  // Left are inputs of the output projection and of the second linear of the MLP, 4 h wide.
  EXPECT_EQ(casts_of(passes_of(fp8_plan()).forward), (Bytes64{4, 4 * 4}));
  // Scales of whole tensors are not known before the norm is done.
  EXPECT_EQ(casts_of(passes_of(fp8_plan({}, Fp8Recipe::kTensorwise)).forward), (Bytes64{6, 6, 6, 6 * 4}));
  // Gradients of outputs: MLP out, MLP in (4 h), output projection, qkv (3 h).
  EXPECT_EQ(casts_of(passes_of(fp8_plan()).backward), (Bytes64{4, 4 * 4, 4, 4 * 3}));
}

TEST(Fp8, OthersCastInputsAgainForWeightGradients) {
  ParallelPlan plan = fp8_plan({}, Fp8Recipe::kTensorwise);
  plan.transformer_engine = false;
  EXPECT_EQ(casts_of(passes_of(plan).forward), (Bytes64{5, 5, 5, 5 * 4}));
  // Each gradient in rows (5 bytes: read twice) and in columns (3), each input in columns, after it was read
  // for its largest element (2): of MLP out, MLP in, output projection and qkv.
  EXPECT_EQ(casts_of(passes_of(plan).backward),
            (Bytes64{5, 3, 2 * 4, 3 * 4, 5 * 4, 3 * 4, 2, 3, 5, 3, 2, 3, 5 * 3, 3 * 3, 2, 3}));
  EXPECT_TRUE(moved_by(passes_of(plan).backward, "transpose").empty());
}

/// torchao's roofline (torchao/testing/training/roofline_utils.py): columns are cast from a copy in bf16 that
/// is turned round.
TEST(Fp8, ScalesOfRowsTurnTensorsRoundInBf16First) {
  ParallelPlan plan = fp8_plan({}, Fp8Recipe::kRowwise);
  plan.transformer_engine = false;
  EXPECT_EQ(casts_of(passes_of(plan).forward), (Bytes64{3, 3, 3, 3 * 4}));
  EXPECT_EQ(casts_of(passes_of(plan).backward),
            (Bytes64{3, 3, 3 * 4, 3 * 4, 3 * 4, 3, 3, 3, 3, 3 * 3, 3 * 3, 3}));
  // Gradient and input of MLP out (4 h), MLP in, output projection, qkv (3 h).
  EXPECT_EQ(moved_by(passes_of(plan).backward, "transpose"), (Bytes64{4, 4 * 4, 4 * 4, 4, 4, 4, 4 * 3, 4}));
}

/// What backward's multiplies put out is read and written once more: inputs' gradients of s b h, and of 4 s b
/// h for MLP out; weights' gradients.
TEST(Fp8, ScalesOfRowsAreMultipliedAfterwardsInBackward) {
  ParallelPlan plan = fp8_plan({}, Fp8Recipe::kRowwise);
  plan.transformer_engine = plan.gradient_accumulation_fusion = false;
  const double square = static_cast<double>(kHidden * kHidden) / static_cast<double>(kSbh);
  EXPECT_TRUE(moved_by(passes_of(plan).forward, "scales of rows").empty());
  EXPECT_EQ(moved_by(passes_of(plan).backward, "scales of rows"),
            (Bytes64{4 * 4, 4 * 4 * square, 4, 4 * 4 * square, 4, 4 * square, 4, 4 * 3 * square}));
  plan.fp8.recipe = Fp8Recipe::kTensorwise;
  EXPECT_TRUE(moved_by(passes_of(plan).backward, "scales of rows").empty());
}

/// Each module of PyTorch's makes copies of its own: query, key and value share an input.
TEST(Fp8, ScalesOfRowsAreMadeByEachModule) {
  ParallelPlan plan = fp8_plan({1, 1, 1, 2}, Fp8Recipe::kRowwise);
  plan.sharding = plan::Sharding::kZero3;
  plan.framework = plan::Framework::kFsdp;
  plan.transformer_engine = false;
  plan.fused_linears.qkv = false;
  const std::vector<double> inputs = moved_by(passes_of(plan).forward, "cast to 8 bits");
  EXPECT_EQ(std::vector<double>(inputs.begin(), inputs.begin() + 3), (Bytes64{3, 3, 3}));
  // Gradients and inputs as above, the input of qkv three times, and weights (12 h^2 in all).
  double transposed = 0;
  for (const double bytes : moved_by(passes_of(plan).backward, "transpose")) transposed += bytes;
  const double weights = static_cast<double>(kLayerWeights) / static_cast<double>(kSbh);
  EXPECT_DOUBLE_EQ(transposed, 4 * (1 + 4 + 4 + 1 + 1 + 1 + 3 + 3) + 4 * weights);
}

TEST(Fp8, IsOfLinearLayersAlone) {
  const ParallelPlan plan = fp8_plan();
  ParallelPlan wide = plan;
  wide.precision = plan::Precision::kBf16;
  const LayerPasses low = passes_of(plan);
  const LayerPasses high = passes_of(wide);
  const auto seconds = [](const Pass& pass, const char* name) {
    return kernels_of(pass, name).at(0).seconds;
  };
  for (const char* name : {"qkv", "attention output", "mlp in", "mlp out"}) {
    EXPECT_LT(seconds(low.forward, name), seconds(high.forward, name)) << name;
    EXPECT_EQ(kernels_of(low.forward, name).at(0).flops, kernels_of(high.forward, name).at(0).flops) << name;
  }
  for (const char* name : {"attention scores", "attention values", "norm"})
    EXPECT_EQ(seconds(low.forward, name), seconds(high.forward, name)) << name;
  for (const char* name : {"qkv: input gradient", "mlp out: weight gradient"})
    EXPECT_LT(seconds(low.backward, name), seconds(high.backward, name)) << name;
}

TEST(Fp8, KeepsInputsInOneByte) {
  model::ModelSpec model = model_of();
  const std::int64_t ass = model.num_attention_heads * kTokens * kTokens;
  // Korthikanti's 34 sbh + 5 a s^2 b: inputs of qkv, output projection and MLP 2 -> 1 each, of its second
  // linear 8 -> 4.
  EXPECT_EQ(layer_tape(model, fp8_plan()).kept(), (34 - 3 - 4) * kSbh + 5 * ass);
  // Fused attention keeps its output as well, and a number for each row and head.
  model.attention = model::Attention::kFlash;
  const std::int64_t sums = 4 * kTokens * model.num_attention_heads;
  EXPECT_EQ(layer_tape(model, fp8_plan()).kept(), (34 - 2 + 1 - 4) * kSbh + sums);
  // A scale for every 32 elements.
  EXPECT_EQ(layer_tape(model, fp8_plan({}, Fp8Recipe::kMxfp8)).kept(),
            (34 - 2 + 1 - 4) * kSbh + 7 * kSbh / 32 + sums);
  ParallelPlan others = fp8_plan();
  others.transformer_engine = false;
  EXPECT_EQ(layer_tape(model, others).kept(), 34 * kSbh + sums);
}

TEST(Fp8, KeepsNothingOfInputsThatAreMadeAgain) {
  ParallelPlan plan = fp8_plan();
  plan.recompute.granularity = plan::RecomputeGranularity::kSelective;
  plan.recompute.modules = {false, false, true, true, false};
  model::ModelSpec model = model_of();
  const std::int64_t ass = model.num_attention_heads * kTokens * kTokens;
  // Without both norms' outputs (4) and the activation's (8); the output projection's input is left to halve.
  EXPECT_EQ(layer_tape(model, plan).kept(), (34 - 4 - 8 - 1) * kSbh + 5 * ass);
}

/// Bytes of a state tensor, or of all its parts; 0 if there is none.
Bytes state_of(const ParallelPlan& plan, const std::string& name) {
  Bytes bytes = 0;
  for (const StateTensor& tensor : state_tensors(model_of(), plan, 0))
    bytes += tensor.name == name || tensor.name.starts_with(name + ", part") ? tensor.bytes : 0;
  return bytes;
}

TEST(Fp8, HoldsTwoCopiesOfWeights) {
  ParallelPlan plan = fp8_plan();
  const std::int64_t parameters = stage_parameters(model_of(), plan, 0);
  EXPECT_EQ(state_of(plan, "weights in 8 bits"), 2 * kLayers * kLayerWeights);
  EXPECT_EQ(state_of(plan, "parameters"), 2 * parameters);
  plan.fp8.parameters = true;
  EXPECT_EQ(state_of(plan, "weights in 8 bits"), 2 * kLayers * kLayerWeights);
  EXPECT_EQ(state_of(plan, "parameters"), 2 * (parameters - kLayers * kLayerWeights));
  // Master parameters stay as they are.
  EXPECT_EQ(state_of(plan, "master parameters"), 4 * parameters);
  plan.fp8.parameters = false;
  plan.framework = plan::Framework::kFsdp;
  EXPECT_EQ(state_of(plan, "weights in 8 bits"), 0);
}

/// Bytes of the collectives of a group, in the order of the program.
std::vector<double> bytes_of(const ParallelPlan& plan, program::Stream stream, GroupKind group,
                             CollectiveOp op) {
  const std::vector<program::Program> programs = lower(
      model_of(), plan,
      [] {
        hardware::ClusterSpec cluster = tests::round_cluster();
        cluster.gpu = fp8_gpu();
        return cluster;
      }(),
      schedule::build(plan));
  std::vector<double> bytes;
  for (const program::Instruction& instruction : tests::collectives(programs.front(), stream, group)) {
    if (instruction.collective == op) bytes.push_back(instruction.amount);
  }
  return bytes;
}

TEST(Fp8, GathersWeightsInOneByteWhereTheyAreHeldSo) {
  ParallelPlan plan = fp8_plan({1, 1, 1, 2});
  plan.sharding = plan::Sharding::kZero1;
  const auto parameters = static_cast<double>(stage_parameters(model_of(), plan, 0));
  const auto gathered = [&] {
    return bytes_of(plan, program::Stream::kCompute, GroupKind::kData, CollectiveOp::kAllGather);
  };
  EXPECT_EQ(gathered(), Bytes64{2 * parameters});
  plan.fp8.parameters = true;
  EXPECT_EQ(gathered(), Bytes64{2 * parameters - static_cast<double>(kLayers * kLayerWeights)});
}

TEST(Fp8, GathersShardedLayersInOneByteWhereTheyAreHeldSo) {
  ParallelPlan plan = fp8_plan({1, 1, 1, 2});
  plan.sharding = plan::Sharding::kZero3;
  plan.framework = plan::Framework::kFsdp;
  plan.transformer_engine = false;
  const auto layer = static_cast<double>(layer_parameters_per_rank(model_of(), plan));
  const auto second = [&] {
    return bytes_of(plan, program::Stream::kData, GroupKind::kData, CollectiveOp::kAllGather).at(1);
  };
  EXPECT_EQ(second(), 2 * layer);
  plan.fp8.parameters = true;
  EXPECT_EQ(second(), 2 * layer - static_cast<double>(kLayerWeights));
}

/// The first gather of a layer's input.
double gathered_input(Fp8Recipe recipe) {
  ParallelPlan plan = fp8_plan({2, 1, 1, 1}, recipe);
  plan.sequence_parallel = true;
  for (const Step& step : passes_of(plan).forward) {
    if (step.kind == StepKind::kCollective) return step.bytes;
  }
  return 0;
}

TEST(Fp8, GathersActivationsInOneByte) {
  EXPECT_EQ(gathered_input(Fp8Recipe::kDelayed), kSbh);
  EXPECT_EQ(gathered_input(Fp8Recipe::kMxfp8), kSbh * (1 + 1.0 / 32));
  EXPECT_EQ(gathered_input(Fp8Recipe::kRowwise), 2 * kSbh);
}

/// Bytes of all kernels of that name in a program.
double kernel_bytes(const ParallelPlan& plan, const std::string& name) {
  double bytes = 0;
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.gpu = fp8_gpu();
  const std::vector<program::Program> programs = lower(model_of(), plan, cluster, schedule::build(plan));
  for (const program::Segment& segment : programs.front().segments) {
    for (const program::Kernel& kernel : segment.kernels) bytes += kernel.name == name ? kernel.bytes : 0;
  }
  return bytes;
}

TEST(Fp8, CastsWeightsOnceAStepOrEachTimeTheyAreGathered) {
  ParallelPlan plan = fp8_plan();
  EXPECT_EQ(kernel_bytes(plan, "weights to 8 bits"), 4 * kLayers * kLayerWeights);
  plan.fp8.parameters = true;
  EXPECT_EQ(kernel_bytes(plan, "weights to 8 bits"), 0);
  plan = fp8_plan({1, 1, 1, 2});
  plan.sharding = plan::Sharding::kZero3;
  plan.framework = plan::Framework::kFsdp;
  EXPECT_EQ(kernel_bytes(plan, "weights to 8 bits"), 0);
  // 3 bytes in forward for each weight of a layer, beside two casts of inputs.
  double weights = 0;
  for (const double bytes : casts_of(passes_of(plan).forward)) weights += bytes;
  EXPECT_EQ(weights * kSbh, 3 * kLayerWeights + 20 * kSbh);
}

/// Bytes that 8 bits save of what a layer keeps.
Bytes saved(const model::ModelSpec& model, model::LayerKind kind) {
  ParallelPlan wide = fp8_plan();
  wide.precision = plan::Precision::kBf16;
  return layer_tape(model, wide, kind).kept() - layer_tape(model, fp8_plan(), kind).kept();
}

TEST(Fp8, KeepsInputsOfLatentsInOneByteEach) {
  model::ModelSpec model = model_of();
  model.attention = model::Attention::kFlash;
  const Bytes plain = saved(model, model::LayerKind::kDense);
  model.latent = {128, 64, 32};
  // Both first projections have one input of 2 bytes, of which each keeps a copy of 1, so that qkv's saving
  // is lost; what the norms of both latents put out goes from 2 bytes to 1.
  EXPECT_EQ(saved(model, model::LayerKind::kDense) - plain, kTokens * (128 + 64) - kSbh);
}

TEST(Fp8, KeepsInputsOfExpertsInOneByte) {
  const model::ModelSpec mixture = tests::small_mixture();
  ParallelPlan plan = fp8_plan();
  ParallelPlan wide = plan;
  wide.precision = plan::Precision::kBf16;
  // Each token is there twice, as wide as the model before the experts and behind their activation; inputs of
  // qkv and of the output projection. The router keeps its own.
  EXPECT_EQ(saved(mixture, model::LayerKind::kExpert), 2 * 2 * kSbh + 2 * kSbh);
  // 16 experts of 2 x 512 x 512, or 3 if gated, and attention.
  const std::int64_t linears = mixture.gated() ? 3 : 2;
  const Fp8Parameters layer = fp8_layer_parameters(mixture, plan, model::LayerKind::kExpert);
  EXPECT_EQ(layer.experts, 16 * linears * 512 * 512);
  EXPECT_EQ(layer.shared, 4 * 512 * 512);
  EXPECT_EQ(fp8_layer_parameters(mixture, wide, model::LayerKind::kExpert).total(), 0);
}

}  // namespace
}  // namespace trainsim::lowering
