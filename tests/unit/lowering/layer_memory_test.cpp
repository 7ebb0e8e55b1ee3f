// SPDX-License-Identifier: Apache-2.0
// Bytes of activations and model state against Korthikanti et al. 2022 (arXiv 2205.05198), section 4, and the
// arithmetic of ZeRO (arXiv 1910.02054). s sequence, b micro-batch, h hidden, a heads, L layers, V
// vocabulary, t tensor, p pipeline, v chunks, d data parallel, m micro-batches.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "sim/base/units.hpp"
#include "sim/config/experiment.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using plan::RecomputeGranularity;
using program::MemoryCategory;
using tests::gpt;
using tests::memory_of;
using tests::of;
using tests::split_plan;

/// Table 3 of Korthikanti et al. and what Calculon's validation data (github.com/calculon-ai/calculon) reads
/// off their figures 1 and 7 in GiB: activations of the first stage with tensor parallelism alone, and with
/// sequence parallelism and selective recomputation; parameters and optimizer state of the layers.
struct PublishedModel {
  std::int64_t layers;
  std::int64_t hidden;
  std::int64_t heads;
  std::int64_t micro_batch;
  std::int64_t pipeline;
  std::int64_t chunks;
  std::int64_t micro_batches;
  double plain_gib;
  double selective_gib;
  double state_gib;
};
constexpr PublishedModel k22b = {48, 6144, 64, 4, 1, 1, 1, 59.25, 9.56, 45.56};
constexpr PublishedModel k175b = {96, 12288, 96, 1, 8, 3, 64, 66.84, 12.35, 45.56};
constexpr PublishedModel k530b = {105, 20480, 128, 1, 35, 3, 280, 114.02, 23.08, 31.64};
constexpr PublishedModel k1t = {128, 25600, 160, 1, 64, 1, 512, 131.25, 26.56, 32.96};
constexpr std::int64_t kSequence = 2048;
constexpr std::int64_t kTensor = 8;

model::ModelSpec gpt_of(const PublishedModel& published) {
  return gpt({published.layers, published.hidden, published.heads, 51200, kSequence});
}

ParallelPlan plan_of(const PublishedModel& published) {
  return split_plan({kTensor, published.pipeline, published.chunks, 1}, published.micro_batches,
                    published.micro_batch);
}

/// Bytes that backward makes again.
Bytes brought_back(const Tape& tape) {
  Bytes bytes = 0;
  for (const MemoryChange& change : tape.backward()) {
    if (change.allocates && change.category == MemoryCategory::kRecomputation) bytes += change.bytes;
  }
  return bytes;
}

class KorthikantiTable2 : public testing::TestWithParam<PublishedModel> {
 protected:
  /// s b h and a s^2 b, the two products of all rows.
  std::int64_t sbh() const { return kSequence * GetParam().micro_batch * GetParam().hidden; }
  std::int64_t ass() const { return GetParam().heads * kSequence * kSequence * GetParam().micro_batch; }

  Tape memory(std::int64_t tensor, bool sequence, RecomputeGranularity granularity) const {
    ParallelPlan plan = split_plan({tensor, 1, 1, 1}, 1, GetParam().micro_batch);
    plan.sequence_parallel = sequence;
    plan.recompute.granularity = granularity;
    return layer_tape(gpt_of(GetParam()), plan);
  }
};

TEST_P(KorthikantiTable2, NoParallelism) {
  // s b h (34 + 5 a s / h)
  EXPECT_EQ(memory(1, false, RecomputeGranularity::kNone).kept(), 34 * sbh() + 5 * ass());
}

TEST_P(KorthikantiTable2, TensorParallelism) {
  // s b h (10 + 24 / t + 5 a s / (h t))
  EXPECT_EQ(memory(kTensor, false, RecomputeGranularity::kNone).kept(),
            10 * sbh() + 24 * sbh() / kTensor + 5 * ass() / kTensor);
}

TEST_P(KorthikantiTable2, TensorAndSequenceParallelism) {
  // s b h (34 / t + 5 a s / (h t))
  EXPECT_EQ(memory(kTensor, true, RecomputeGranularity::kNone).kept(),
            34 * sbh() / kTensor + 5 * ass() / kTensor);
}

TEST_P(KorthikantiTable2, TensorParallelismAndSelectiveRecomputation) {
  // s b h (10 + 24 / t); the 5 a s^2 b / t come back while the layer's backward runs.
  const Tape layer = memory(kTensor, false, RecomputeGranularity::kSelective);
  EXPECT_EQ(layer.kept(), 10 * sbh() + 24 * sbh() / kTensor);
  EXPECT_GE(brought_back(layer), 5 * ass() / kTensor);
}

TEST_P(KorthikantiTable2, TensorAndSequenceParallelismAndSelectiveRecomputation) {
  // s b h 34 / t
  const Tape layer = memory(kTensor, true, RecomputeGranularity::kSelective);
  EXPECT_EQ(layer.kept(), 34 * sbh() / kTensor);
  EXPECT_GE(brought_back(layer), 5 * ass() / kTensor);
}

/// Bytes that are there after gradients of inputs, until those of weights are made.
Bytes put_off(const Tape& tape) {
  Bytes bytes = tape.kept();
  const auto [inputs, weights] = tape.split_backward();
  for (const MemoryChange& change : inputs) bytes += change.allocates ? change.bytes : -change.bytes;
  return bytes;
}

/// Qi et al. 2023, table 1: 32 s b h, the inputs of four linear layers (2 + 2 + 2 + 8) and the gradients of
/// their outputs (6 + 2 + 8 + 2).
TEST_P(KorthikantiTable2, WeightGradientsPutOff) {
  EXPECT_EQ(put_off(memory(1, false, RecomputeGranularity::kNone)), 32 * sbh());
  EXPECT_EQ(put_off(memory(1, false, RecomputeGranularity::kSelective)), 32 * sbh());
  // On t ranks; the inputs of column-parallel layers and the gradients behind row-parallel ones are whole.
  EXPECT_EQ(put_off(memory(kTensor, false, RecomputeGranularity::kNone)), 8 * sbh() + 24 * sbh() / kTensor);
  // With sequence parallelism these gradients are gathered, and the inputs are not.
  EXPECT_EQ(put_off(memory(kTensor, true, RecomputeGranularity::kNone)), 4 * sbh() + 28 * sbh() / kTensor);
}

TEST(LayerMemory, OfWeightGradientsPutOffDoesNotDependOnDropout) {
  model::ModelSpec model = gpt_of(k22b);
  const Bytes with_dropout = put_off(layer_tape(model, split_plan({})));
  model.dropout = 0;
  EXPECT_EQ(put_off(layer_tape(model, split_plan({}))), with_dropout);
}

TEST_P(KorthikantiTable2, FullRecomputation) {
  // 2 s b h, on every tensor-parallel rank.
  EXPECT_EQ(memory(kTensor, false, RecomputeGranularity::kFull).input_bytes(), 2 * sbh());
  EXPECT_EQ(memory(1, false, RecomputeGranularity::kFull).input_bytes(), 2 * sbh());
}

INSTANTIATE_TEST_SUITE_P(Models, KorthikantiTable2, testing::Values(k22b, k175b, k530b, k1t));

TEST(LayerMemory, DoublesWithFp32Elements) {
  // 16 values of 4 bytes, 2 masks of 1 byte; scores: 2 values and 1 mask.
  ParallelPlan plan = split_plan({});
  plan.precision = plan::Precision::kFp32;
  const std::int64_t sbh = 256 * 512;
  const std::int64_t ass = 8 * 256 * 256;
  EXPECT_EQ(layer_tape(gpt({}), plan).kept(), 66 * sbh + 9 * ass);
}

TEST(LayerMemory, HasNoMasksWithoutDropout) {
  // Both masks (1 byte each) of 34 s b h, and of the 5 a s^2 b all but the softmax's 2.
  model::ModelSpec model = gpt({});
  model.dropout = 0;
  EXPECT_EQ(layer_tape(model, split_plan({})).kept(), 32 * 256 * 512 + 2 * 8 * 256 * 256);
}

TEST(LayerMemory, KeepsOneFp32NumberPerRowOfFlashAttention) {
  model::ModelSpec model = gpt({});
  model.attention = model::Attention::kFlash;
  EXPECT_EQ(layer_tape(model, split_plan({})).kept(), 34 * 256 * 512 + 4 * 8 * 256);
}

/// Llama: norm input, linear input twice each (4 h), queries and attention output (2 h), keys and values with
/// g of a heads (2 h g / a), gate, up and their product (3 f); 2 bytes each; flash attention's 4 a per token.
TEST(LayerMemory, CountsGroupedQueriesAndAGatedMlp) {
  const model::ModelSpec llama = config::load_model("llama3-8b");
  const std::int64_t values = 4 * 4096 + 2 * 4096 + 2 * 1024 + 3 * 14336;
  EXPECT_EQ(layer_tape(llama, split_plan({})).kept(), 8192 * (2 * values + 4 * 32));
}

/// The worked example of flash attention: 34 b s h bytes with b = 4, s = h = 4096 are 2.28 GB for a layer, 73
/// GB for 32.
TEST(LayerMemory, OfA7bShapeIsTwoPointTwoEightGigabytes) {
  model::ModelSpec model = gpt({32, 4096, 32, 32000, 4096});
  model.attention = model::Attention::kFlash;
  const auto bytes = static_cast<double>(layer_tape(model, split_plan({}, 1, 4)).kept());
  EXPECT_NEAR(bytes / kGiga, 2.28, 0.005);
  EXPECT_NEAR(32 * bytes / kGiga, 73, 0.1);
}

// First stage of a small GPT: L = 8, h = 512, a = 8, s = 256, t = 2 with sequence parallelism.
constexpr std::int64_t kLayers = 8;
constexpr std::int64_t kSbh = 256 * 512;
/// s b h / t (34 + 5 a s / h) = 131,072 / 2 * (34 + 20).
constexpr Bytes kLayer = kSbh / 2 * 54;
/// Dropout mask of the embedding's output, s b h / t.
constexpr Bytes kMask = kSbh / 2;

ParallelPlan first_stage_plan(const tests::Split& split, std::int64_t micro_batches) {
  ParallelPlan plan = split_plan(split, micro_batches);
  plan.sequence_parallel = true;
  return plan;
}

Bytes first_stage_activations(const ParallelPlan& plan) {
  return of(memory_of(gpt({kLayers}), plan).front().largest, MemoryCategory::kActivations);
}

TEST(FirstStage, KeepsAPipelineOfMicroBatchesWith1F1B) {
  // p micro-batches of L/p layers: as much as all layers of one, s b h L / t (34 + 5 a s / h); and p masks.
  for (const std::int64_t p : {2, 4, 8}) {
    EXPECT_EQ(first_stage_activations(first_stage_plan({2, p, 1, 1}, 2 * p)), kLayers * kLayer + p * kMask)
        << "p = " << p;
  }
}

TEST(FirstStage, KeepsOnlyTheMicroBatchesThereAre) {
  // Three micro-batches cannot fill four stages.
  EXPECT_EQ(first_stage_activations(first_stage_plan({2, 4, 1, 1}, 3)), 3 * (2 * kLayer + kMask));
}

TEST(FirstStage, KeepsEveryMicroBatchWithGpipe) {
  for (const std::int64_t m : {1, 4, 12}) {
    ParallelPlan plan = first_stage_plan({2, 4, 1, 1}, m);
    plan.schedule = plan::ScheduleKind::kGpipe;
    EXPECT_EQ(first_stage_activations(plan), m * (2 * kLayer + kMask)) << "m = " << m;
  }
}

/// Interleaving keeps 1 + (p-1)/(p v) times as much: p v + p - 1 passes of L/(p v) layers. Of the first chunk
/// there are at most 2 p passes at a time: its next group of p runs before the first group has come back.
TEST(FirstStage, KeepsMoreWithInterleaving) {
  // p = 4, v = 2: 11 passes of one layer, 8 (1 + 3/8) = 11. p = 2, v = 4: 9 passes, 8 (1 + 1/8) = 9.
  EXPECT_EQ(first_stage_activations(first_stage_plan({2, 4, 2, 1}, 8)), 11 * kLayer + 8 * kMask);
  EXPECT_EQ(first_stage_activations(first_stage_plan({2, 2, 4, 1}, 8)), 9 * kLayer + 4 * kMask);
  // p = 2, v = 2: 5 passes of two layers, 8 (1 + 1/4) = 10.
  EXPECT_EQ(first_stage_activations(first_stage_plan({2, 2, 2, 1}, 8)), 10 * kLayer + 4 * kMask);
}

TEST(FirstStage, KeepsOnlyInputsWithFullRecomputation) {
  // Without sequence parallelism: 2 s b h for each of L/p layers and p micro-batches, and a mask of s b h.
  ParallelPlan plan = split_plan({2, 4, 1, 1}, 8);
  plan.recompute.granularity = RecomputeGranularity::kFull;
  EXPECT_EQ(first_stage_activations(plan), 4 * (2 * 2 * kSbh + kSbh));
}

TEST(FirstStage, OfAllStagesKeepsTheMost) {
  // 1F1B: stage i has p - i micro-batches in flight; embedding masks are on the first only.
  const std::vector<memory::Profile> stages = memory_of(gpt({kLayers}), first_stage_plan({2, 4, 1, 1}, 8));
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(of(stages[1].largest, MemoryCategory::kActivations), 3 * 2 * kLayer);
  EXPECT_EQ(of(stages[2].largest, MemoryCategory::kActivations), 2 * 2 * kLayer);
}

/// Without a pipeline the output layer is on the same rank: 4 s b h / t (1 + V/h), which is the inputs of the
/// final norm and of the projection (2 bytes each) and the logits in fp32.
TEST(OutputLayer, KeepsItsInputsAndTheLogits) {
  const ParallelPlan plan = first_stage_plan({2, 1, 1, 1}, 1);
  // When forward has ended: V / h = 8192 / 512 = 16.
  const Bytes output = 4 * kSbh / 2 * (1 + 16);
  const memory::Profile profile = memory_of(gpt({kLayers}), plan).front();
  const Bytes state = profile.curve.front().end;
  EXPECT_EQ(profile.curve[1].end - state, kLayers * kLayer + kMask + output);
  EXPECT_EQ(of(profile.largest, MemoryCategory::kActivations), kLayers * kLayer + kMask + 4 * kSbh / 2);
}

TEST(OutputLayer, IsNotSplitBySequenceWithoutSequenceParallelism) {
  const ParallelPlan plan = split_plan({2, 1, 1, 1});
  EXPECT_EQ(head_tape(gpt({}), plan).kept(), 4 * kSbh + 4 * 256 * 8192 / 2);
  EXPECT_EQ(embedding_tape(gpt({}), plan).kept(), kSbh);
}

TEST(Embedding, KeepsNothingWithoutDropout) {
  model::ModelSpec model = gpt({});
  model.dropout = 0;
  const ParallelPlan plan = split_plan({});
  EXPECT_EQ(embedding_tape(model, plan).kept(), 0);
}

TEST(ParametersPerRank, AreSplitExceptNormsAndRowParallelBiases) {
  // 12 h^2 / t; column-parallel biases (3 + 4) h / t; row-parallel biases 2 h and norms 4 h on every rank.
  const std::int64_t h = 512;
  for (const std::int64_t t : {1, 2, 8}) {
    EXPECT_EQ(layer_parameters_per_rank(gpt({}), split_plan({t})), 12 * h * h / t + 7 * h / t + 6 * h)
        << "t = " << t;
  }
}

TEST(ParametersPerRank, ReplicateKeyValueHeadsWhenThereAreTooFew) {
  // Llama 3 8B on 16 ranks: 2 query heads of 128 and one of the 8 key/value heads, which two ranks share.
  const std::int64_t h = 4096;
  const std::int64_t matrices = h * (256 + 2 * 128) + 256 * h + 3 * h * 14336 / 16;
  EXPECT_EQ(layer_parameters_per_rank(config::load_model("llama3-8b"), split_plan({16})), matrices + 2 * h);
}

TEST(StageParameters, AddUpToTheModelAndTheLastStagesCopyOfTheEmbedding) {
  // (12 h^2 + 13 h) per layer, (V + s) h in front, 2 h behind, and V h again behind.
  const std::int64_t h = 512;
  const std::int64_t layer = 12 * h * h + 13 * h;
  const model::ModelSpec model = gpt({kLayers});
  const ParallelPlan plan = split_plan({1, 4, 1, 1});
  EXPECT_EQ(stage_parameters(model, plan, 0), 2 * layer + (8192 + 256) * h);
  EXPECT_EQ(stage_parameters(model, plan, 1), 2 * layer);
  EXPECT_EQ(stage_parameters(model, plan, 2), 2 * layer);
  EXPECT_EQ(stage_parameters(model, plan, 3), 2 * layer + 2 * h + 8192 * h);
  EXPECT_EQ(stage_parameters(model, split_plan({}), 0), 8 * layer + (8192 + 256) * h + 2 * h);
}

/// Bytes of state that a rank holds for `model`.
program::MemoryByCategory state_of(const model::ModelSpec& model, const ParallelPlan& plan) {
  return memory_of(model, plan).front().at_end;
}

Bytes sum(const program::MemoryByCategory& memory) {
  Bytes total = 0;
  for (const Bytes bytes : memory) total += bytes;
  return total;
}

/// 2 layers, h = 512, V = 8192, s = 256: 2 (12 h^2 + 13 h) + (V + s) h + 2 h.
constexpr std::int64_t kSmall = 2 * (12 * 512 * 512 + 13 * 512) + (8192 + 256) * 512 + 2 * 512;

TEST(ModelState, Takes16BytesPerParameterWithTwoByteGradients) {
  ParallelPlan plan = split_plan({});
  plan.gradient_bytes = 2;
  const program::MemoryByCategory state = state_of(gpt({2}), plan);
  EXPECT_EQ(of(state, MemoryCategory::kParameters), 2 * kSmall);
  EXPECT_EQ(of(state, MemoryCategory::kGradients), 2 * kSmall);
  EXPECT_EQ(of(state, MemoryCategory::kOptimizerState), 12 * kSmall);
  EXPECT_EQ(sum(state), 16 * kSmall);
}

TEST(ModelState, Takes18BytesPerParameterWithFp32Gradients) {
  const program::MemoryByCategory state = state_of(gpt({2}), split_plan({}));
  EXPECT_EQ(of(state, MemoryCategory::kMainGradients), 4 * kSmall);
  EXPECT_EQ(sum(state), 18 * kSmall);
}

TEST(ModelState, Takes16BytesPerParameterInFp32) {
  // Parameter, gradient and two moments; no master copy.
  ParallelPlan plan = split_plan({});
  for (const plan::Precision precision : {plan::Precision::kFp32, plan::Precision::kTf32}) {
    plan.precision = precision;
    EXPECT_EQ(sum(state_of(gpt({2}), plan)), 16 * kSmall);
  }
}

TEST(ModelState, ShardsTheOptimizerWithZero1) {
  // 6 + 12 / d bytes per parameter; kSmall is a multiple of 4.
  ParallelPlan plan = split_plan({1, 1, 1, 4});
  EXPECT_EQ(sum(state_of(gpt({2}), plan)), 18 * kSmall);
  plan.sharding = plan::Sharding::kZero1;
  EXPECT_EQ(sum(state_of(gpt({2}), plan)), (6 + 12 / 4) * kSmall);
}

/// 7 B on 8 GPUs with ZeRO-1 and 2-byte gradients: 14 + 14 + 10.5 GB, that is 2 + 2 + 1.5 bytes per parameter
/// of the real 6,738,415,616, which eight divides.
TEST(ModelState, Of7BillionParametersOnEightGpus) {
  ParallelPlan plan = split_plan({1, 1, 1, 8});
  plan.gradient_bytes = 2;
  plan.sharding = plan::Sharding::kZero1;
  const program::MemoryByCategory state = state_of(config::load_model("llama2-7b"), plan);
  EXPECT_EQ(of(state, MemoryCategory::kParameters), 13'476'831'232);
  EXPECT_EQ(of(state, MemoryCategory::kGradients), 13'476'831'232);
  EXPECT_EQ(of(state, MemoryCategory::kOptimizerState), 10'107'623'424);
}

/// The same with the other stages: 14 + 1.75 + 10.5 GB and 1.75 + 1.75 + 10.5 = 14 GB, where parameters and
/// optimizer are apart (DeepSpeed).
TEST(ModelState, Of7BillionParametersUnderZero2And3) {
  ParallelPlan plan = split_plan({1, 1, 1, 8});
  plan.gradient_bytes = 2;
  plan.framework = plan::Framework::kDeepSpeed;
  plan.sharding = plan::Sharding::kZero2;
  const program::MemoryByCategory two = state_of(config::load_model("llama2-7b"), plan);
  EXPECT_EQ(of(two, MemoryCategory::kParameters), 13'476'831'232);
  EXPECT_EQ(of(two, MemoryCategory::kGradients), 13'476'831'232 / 8);
  EXPECT_EQ(of(two, MemoryCategory::kOptimizerState), 10'107'623'424);
  plan.sharding = plan::Sharding::kZero3;
  const program::MemoryByCategory three = state_of(config::load_model("llama2-7b"), plan);
  EXPECT_EQ(of(three, MemoryCategory::kParameters), 13'476'831'232 / 8);
  EXPECT_EQ(of(three, MemoryCategory::kGradients), 13'476'831'232 / 8);
  EXPECT_EQ(of(three, MemoryCategory::kOptimizerState), 10'107'623'424);
}

/// Chen et al. 2016: n layers of s bytes behind K checkpoints of c bytes keep K c + n / K s, least at K =
/// sqrt(n s / c). Here 64 layers of 54 s b h bytes with their inputs of 2 s b h: K = sqrt(64 * 27) = 41.6, so
/// that of the possible groups of 1, 2, 4, … layers 2 (K = 32) are best, and the peak is 32 c + 2 s - c.
TEST(Recomputation, IsBestWithTheSquareRootOfTheLayers) {
  constexpr Bytes kInput = 2 * kSbh;
  constexpr Bytes kWhole = 54 * kSbh;
  std::map<std::int64_t, Bytes> peaks;
  for (const std::int64_t group : {1, 2, 4, 8, 16, 32, 64}) {
    ParallelPlan plan = split_plan({});
    plan.recompute = {RecomputeGranularity::kFull, plan::RecomputeMethod::kUniform, group};
    const program::MemoryByCategory most = memory_of(gpt({64}), plan).front().largest;
    peaks[group] =
        of(most, MemoryCategory::kActivations) + of(most, MemoryCategory::kRecomputation) - 5 * kSbh;
    EXPECT_EQ(peaks[group], 64 / group * kInput + group * kWhole - kInput) << group;
  }
  const auto best = std::min_element(peaks.begin(), peaks.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(best->first, 2);
}

/// Each optimizer's moments beside the fp32 parameter of 4 bytes.
TEST(ModelState, DependsOnTheOptimizer) {
  using plan::Optimizer;
  const std::map<Optimizer, double> bytes = {
      {Optimizer::kAdam, 12}, {Optimizer::kLion, 8},      {Optimizer::kSgdMomentum, 8},
      {Optimizer::kSgd, 4},   {Optimizer::kAdafactor, 4}, {Optimizer::kAdam8Bit, 4 + 2 * 260.0 / 256}};
  for (const auto& [optimizer, expected] : bytes) {
    ParallelPlan plan = split_plan({});
    plan.optimizer = optimizer;
    const auto state = static_cast<double>(of(state_of(gpt({2}), plan), MemoryCategory::kOptimizerState));
    EXPECT_NEAR(state / static_cast<double>(kSmall), expected, 1e-4) << plan::to_string(optimizer);
  }
}

/// FSDP's shards are in fp32 and are their own masters: 4 + 4 + 8 bytes over all ranks.
TEST(ModelState, OfFsdpIsInFp32) {
  ParallelPlan plan = split_plan({1, 1, 1, 4});
  plan.framework = plan::Framework::kFsdp;
  plan.sharding = plan::Sharding::kZero3;
  EXPECT_EQ(sum(state_of(gpt({2}), plan)), 16 * kSmall / 4);
}

/// DeepSpeed keeps 2-byte gradients beside the fp32 sums, and two buckets of all parameters, as these are
/// few.
TEST(ModelState, OfDeepSpeedHasGradientsTwice) {
  ParallelPlan plan = split_plan({1, 1, 1, 4});
  plan.framework = plan::Framework::kDeepSpeed;
  EXPECT_EQ(sum(state_of(gpt({2}), plan)), 20 * kSmall);
  plan.sharding = plan::Sharding::kZero1;
  EXPECT_EQ(sum(state_of(gpt({2}), plan)), (8 + 3 + 4) * kSmall);
}

double gib(Bytes bytes) {
  return static_cast<double>(bytes) / kGibi;
}

/// Activations of the first stage without embedding: micro-batches in flight (with interleaving p + (p-1)/v)
/// times L/p layers.
double first_stage_gib(const PublishedModel& published, const ParallelPlan& plan) {
  const double in_flight = schedule::peak_in_flight(schedule::build(plan), 0);
  const auto layers = static_cast<double>(published.layers / published.pipeline);
  return in_flight * layers * gib(layer_tape(gpt_of(published), plan).kept());
}

TEST(DenseCases, A08_ActivationMemoryOfFourModels) {
  for (const PublishedModel& published : {k22b, k175b, k530b, k1t}) {
    ParallelPlan plan = plan_of(published);
    EXPECT_NEAR(first_stage_gib(published, plan), published.plain_gib, 0.002 * published.plain_gib);
    plan.sequence_parallel = true;
    plan.recompute.granularity = RecomputeGranularity::kSelective;
    EXPECT_NEAR(first_stage_gib(published, plan), published.selective_gib, 0.002 * published.selective_gib);
  }
}

TEST(DenseCases, A08_StateOfTheLayersOfFourModels) {
  // 18 bytes for each of 12 h^2 L / (t p) parameters.
  for (const PublishedModel& published : {k22b, k175b, k530b, k1t}) {
    const std::int64_t parameters = layer_parameters_per_rank(gpt_of(published), plan_of(published)) *
                                    (published.layers / published.pipeline);
    EXPECT_NEAR(gib(18 * parameters), published.state_gib, 0.001 * published.state_gib);
  }
}

/// The logits' softmax in fp32, if it is alive at the peak.
Bytes fp32_logits(const memory::Profile& profile) {
  for (const memory::LiveTensor& tensor : profile.alive_at_peak) {
    if (tensor.name == "softmax of the logits in fp32") return tensor.bytes;
  }
  return 0;
}

/// github.com/NVIDIA/Megatron-LM/issues/525: GPT-2 774M with micro-batches of 4 runs out of the 31.74 GiB of
/// a V100 when it allocates fp32 logits of 4 * 1024 * 50,304 * 4 bytes = 786 MiB.
TEST(DenseCases, A17_Gpt2LargeDoesNotFitOn32Gigabytes) {
  ParallelPlan plan = split_plan({}, 1, 4);
  plan.precision = plan::Precision::kFp16;
  const memory::Profile profile = memory_of(gpt({36, 1280, 20, 50257, 1024}), plan).front();
  EXPECT_EQ(fp32_logits(profile), 786 * 1024 * 1024);
  EXPECT_GT(gib(profile.peak), 31.74);
}

/// One sample of 32,768 tokens: logits of 32,768 * 128,256 * 4 bytes are 15.66 GiB; the inputs of 32 layers,
/// 2 * s
/// * h bytes each, 8 GiB, which is less.
TEST(DenseCases, A33_LogitsOfALongSampleAreLargerThanAllCheckpoints) {
  model::ModelSpec model = config::load_model("llama3-8b");
  model.sequence_length = 32768;
  ParallelPlan plan = split_plan({});
  plan.recompute.granularity = RecomputeGranularity::kFull;
  const Bytes logits = fp32_logits(memory_of(model, plan).front());
  EXPECT_NEAR(gib(logits), 15.66, 0.005 * 15.66);
  EXPECT_NEAR(32 * gib(layer_tape(model, plan).input_bytes()), 8.0, 0.005 * 8.0);
  EXPECT_GT(logits, 32 * layer_tape(model, plan).input_bytes());
}

/// 8192 tokens of a vocabulary of 151,936 in fp32: 4.637 GiB.
TEST(DenseCases, A34_LogitsOfABigVocabulary) {
  model::ModelSpec model = config::load_model("llama3-8b");
  model.vocab_size = 151936;
  const ParallelPlan plan = split_plan({});
  EXPECT_NEAR(gib(fp32_logits(memory_of(model, plan).front())), 4.637, 0.001 * 4.637);
}

/// 16 bytes for each of 6.74 billion parameters: 107.8 GB.
TEST(DenseCases, G19_StateOf7BillionParameters) {
  ParallelPlan plan = split_plan({});
  plan.gradient_bytes = 2;
  const Bytes bytes = sum(state_of(config::load_model("llama2-7b"), plan));
  EXPECT_NEAR(static_cast<double>(bytes) / kGiga, 107.8, 0.01 * 107.8);
}

}  // namespace
}  // namespace trainsim::lowering
