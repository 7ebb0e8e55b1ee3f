// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace trainsim::plan {
namespace {

/// A legal plan on nodes of 8 GPUs, for tests to change in one place.
class Check : public testing::Test {
 protected:
  Check() {
    model_.num_layers = 24;
    model_.hidden_size = 1024;
    model_.num_attention_heads = 16;
    model_.num_key_value_heads = 16;
    model_.head_dim = 64;
    model_.intermediate_size = 4096;
    model_.vocab_size = 50257;
    model_.sequence_length = 1024;
    model_.max_position_embeddings = 1024;
    model_.attention = model::Attention::kFlash;
    cluster_.gpu.name = "chip";
    cluster_.gpu.peak_fp32 = 20e12;
    cluster_.gpu.peak_fp16 = 300e12;
    cluster_.gpu.peak_bf16 = 300e12;
    cluster_.gpus_per_node = 8;
    cluster_.nics_per_node = 8;
    cluster_.intra_node.bandwidth = 300e9;
    cluster_.nic.bandwidth = 25e9;
    set(16, 1, 1);
  }

  /// Sets the degrees, with one micro-batch for each replica.
  void set(std::int64_t gpus, std::int64_t tensor, std::int64_t pipeline, std::int64_t chunks = 1) {
    plan_.gpus = gpus;
    plan_.tensor_parallel = tensor;
    plan_.pipeline_parallel = pipeline;
    plan_.virtual_pipeline = chunks;
    plan_.schedule = chunks > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
    plan_.data_parallel = std::max<std::int64_t>(1, gpus / (tensor * pipeline));
    plan_.global_batch_size = plan_.micro_batch_size * plan_.data_parallel;
  }

  /// "field: message" of every problem.
  std::vector<std::string> problems(const std::vector<std::string>& unread = {}) const {
    std::vector<std::string> texts;
    for (const Problem& problem : check(plan_, model_, cluster_, unread)) {
      texts.push_back(problem.field + ": " + problem.message);
    }
    return texts;
  }

  std::vector<std::string> warned() const {
    std::vector<std::string> fields;
    for (const Problem& warning : warnings(plan_, model_, cluster_)) fields.push_back(warning.field);
    return fields;
  }

  ParallelPlan plan_;
  model::ModelSpec model_;
  hardware::ClusterSpec cluster_;
};

using Texts = std::vector<std::string>;

TEST_F(Check, AcceptsALegalPlan) {
  EXPECT_EQ(problems(), Texts{});
  set(64, 8, 4);
  EXPECT_EQ(problems(), Texts{});
  set(64, 8, 4, 3);
  plan_.global_batch_size = 4 * plan_.data_parallel;
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, OffersOnlyDegreesThatAlsoFitTheRest) {
  // Divisors of 52: 1, 2, 4, 13, 26, 52; 13 and its multiples do not divide 64 GPUs.
  model_.num_attention_heads = model_.num_key_value_heads = 52;
  set(64, 8, 1);
  EXPECT_EQ(problems(),
            Texts{"plan.tensor_parallel: 8 does not divide the 52 attention heads; legal here: 1, 2, 4"});
  // With 4 stages, 64 / 4 = 16 GPUs are left for both other dimensions, which changes nothing; with 32 stages
  // 2 are.
  model_.num_layers = 32;
  set(64, 8, 32);
  EXPECT_EQ(problems()[0],
            "plan.tensor_parallel: 8 does not divide the 52 attention heads; legal here: 1, 2");
}

TEST_F(Check, NeedsKeyValueHeadsToSplitOrReplicate) {
  model_.num_attention_heads = 48;
  model_.num_key_value_heads = 12;
  model_.intermediate_size = 4608;
  set(48, 16, 1);
  // 12 % 16 and 16 % 12 are 4. Divisors of 48 that divide 48 GPUs and 12 or are multiples of it:
  EXPECT_EQ(problems(), Texts{"plan.tensor_parallel: 16 and the 12 key/value heads do not divide one "
                              "another; legal here: 1, 2, 3, "
                              "4, 6, 12, 24, 48"});
  set(48, 24, 1);
  EXPECT_EQ(problems(), Texts{});
  EXPECT_EQ(warned(),
            (Texts{"plan.tensor_parallel", "plan.tensor_parallel"}));  // leaves the node, replicates
}

TEST_F(Check, CountsContextParallelRanks) {
  set(64, 2, 4);
  plan_.context_parallel = 4;
  // 2 x 4 x 4 = 32.
  plan_.data_parallel = 2;
  plan_.global_batch_size = 2;
  EXPECT_EQ(problems(), Texts{});
  plan_.gpus = 48;
  EXPECT_EQ(problems(), Texts{"gpus: 48 is not a multiple of tensor_parallel 2 x context_parallel 4 x "
                              "pipeline_parallel 4 = 32; nearest legal: 32 or 64"});
  plan_.gpus = 64;
  plan_.data_parallel = plan_.global_batch_size = 8;
  EXPECT_EQ(problems(),
            Texts{"plan.data_parallel: 8 is not gpus 64 / (tensor_parallel 2 x context_parallel 4 x "
                  "pipeline_parallel 4) = 2; leave it out, or write gpus: 256"});
}

TEST_F(Check, NeedsTwoChunksOfTheSequenceOnEachContextRank) {
  set(64, 1, 1);
  plan_.context_parallel = 8;
  plan_.data_parallel = plan_.global_batch_size = 8;
  model_.sequence_length = 1000;
  // 1000 = 8 x 125: halves of 1, 2 and 4 parts are whole.
  EXPECT_EQ(
      problems(),
      Texts{"plan.context_parallel: 8 needs two equal chunks of the sequence on each rank, and 1000 is not "
            "a multiple of 16; pad to 1008; legal here: 1, 2, 4"});
}

TEST_F(Check, NeedsContextShardsToSplitWithSequenceParallelism) {
  set(64, 8, 1);
  plan_.context_parallel = 8;
  plan_.data_parallel = plan_.global_batch_size = 1;
  plan_.sequence_parallel = true;
  model_.sequence_length = 1024 - 32;
  // 992 = 32 x 31: 8 parts of 124, which 8 does not divide; 4 of 248 it does.
  EXPECT_EQ(
      problems(),
      Texts{"plan.context_parallel: 8 leaves 124 tokens to a rank, which sequence_parallel can't split over "
            "tensor_parallel 8; pad to a multiple of 64; legal here: 1, 2, 4"});
}

TEST_F(Check, NeedsHeadsToExchangeThem) {
  set(32, 2, 1);
  plan_.context_parallel = 8;
  plan_.data_parallel = plan_.global_batch_size = 2;
  plan_.context_communication = ContextCommunication::kAllToAll;
  EXPECT_EQ(problems(), Texts{});
  // 8 key/value heads are 4 on each of two tensor-parallel ranks.
  model_.num_key_value_heads = 8;
  EXPECT_EQ(
      problems(),
      Texts{"plan.context_communication: a2a splits attention by heads, and context_parallel 8 does not "
            "divide the 4 key/value heads of a tensor-parallel rank; legal here: 1, 2, 4; or write p2p or "
            "all_gather"});
  // Other frameworks repeat them for every query head before.
  plan_.framework = Framework::kDeepSpeed;
  EXPECT_EQ(problems(), Texts{});
  model_.num_attention_heads = model_.num_key_value_heads = 12;
  model_.head_dim = 64;
  EXPECT_EQ(
      problems(),
      Texts{"plan.context_communication: a2a splits attention by heads, and context_parallel 8 does not "
            "divide the 6 query heads of a tensor-parallel rank; legal here: 1, 2; or write p2p or "
            "all_gather"});
}

TEST_F(Check, CountsTheStepsOfARingOfLongSequences) {
  set(16, 1, 1);
  plan_.context_parallel = 16;
  plan_.data_parallel = 1;
  // 4,000,000 layers of micro-batches, of 24 layers in 16 parts each: 10,416.67.
  plan_.global_batch_size = 10'416;
  EXPECT_EQ(problems(), Texts{});
  plan_.global_batch_size = 10'417;
  EXPECT_EQ(problems(),
            Texts{"plan.global_batch_size: 10417 makes 10417 micro-batches a step, and with 24 layers in 16 "
                  "parts each "
                  "that is more than can be simulated; at most 10416 micro-batches here, a batch of 10416"});
  plan_.context_communication = ContextCommunication::kAllGather;
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, NeedsFlashAttentionForPartsOfASequence) {
  set(16, 1, 1);
  plan_.context_parallel = 2;
  plan_.data_parallel = plan_.global_batch_size = 8;
  model_.attention = model::Attention::kStandard;
  EXPECT_EQ(problems(), Texts{"model.attention: standard attention can't be put together from parts of a "
                              "sequence, as context_parallel 2 needs; write attention: flash, or "
                              "context_parallel: 1"});
}

TEST_F(Check, WarnsOfContextCommunicationThatIsIdleOrSlow) {
  plan_.context_communication = ContextCommunication::kAllToAll;
  EXPECT_EQ(warned(), Texts{"plan.context_communication"});
  set(16, 1, 1);
  plan_.context_parallel = 16;
  plan_.data_parallel = plan_.global_batch_size = 1;
  EXPECT_EQ(warned(), Texts{"plan.context_communication"});
  plan_.context_communication = ContextCommunication::kP2p;
  EXPECT_EQ(warned(), Texts{});
}

TEST_F(Check, NeedsTheMlpToSplit) {
  model_.intermediate_size = 1000;
  set(16, 16, 1);
  // 1000 = 8 * 125.
  EXPECT_EQ(
      problems(),
      Texts{"plan.tensor_parallel: 16 does not divide the intermediate_size 1000; legal here: 1, 2, 4, 8"});
}

TEST_F(Check, NeedsTheSequenceToSplitWithSequenceParallelismOnly) {
  model_.sequence_length = 1023;
  set(16, 2, 1);
  EXPECT_EQ(problems(), Texts{});
  plan_.sequence_parallel = true;
  EXPECT_EQ(problems(),
            Texts{"model.sequence_length: 1023 is not a multiple of tensor_parallel 2, as sequence_parallel "
                  "needs; pad to 1024, or write sequence_parallel: false"});
}

TEST_F(Check, NeedsAPositionForEveryToken) {
  model_.sequence_length = 2048;
  EXPECT_EQ(problems().size(), 1u);
  model_.position_embedding = model::PositionEmbedding::kRotary;
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, NamesTheNearestWorlds) {
  set(100, 8, 2);
  // Multiples of 16, all of them whole nodes: 96 and 112.
  EXPECT_EQ(problems()[0],
            "gpus: 100 is not a multiple of tensor_parallel 8 x pipeline_parallel 2 = 16; nearest legal: 96 "
            "or 112");
  set(8, 2, 8);
  EXPECT_EQ(problems()[0],
            "gpus: 8 is fewer than tensor_parallel 2 x pipeline_parallel 8 = 16; nearest legal: 16");
}

TEST_F(Check, NamesWorldsThatAlsoFillNodes) {
  // Multiples of 3 that fill nodes of 8: 3 and 6 (part of one node), 24, 48.
  model_.num_attention_heads = model_.num_key_value_heads = 3;
  model_.intermediate_size = 3072;
  set(20, 3, 1);
  EXPECT_EQ(
      problems(),
      (Texts{
          "gpus: 20 is not a multiple of tensor_parallel 3 x pipeline_parallel 1 = 3; nearest legal: 6 or 24",
          "gpus: 20 does not fill whole nodes of 8 GPUs; nearest legal: 6 or 24"}));
}

TEST_F(Check, NamesNoWorldBeyondTheCluster) {
  cluster_.max_gpus = 32;
  set(64, 8, 1);
  EXPECT_EQ(problems(),
            Texts{"gpus: 64 is more than the 32 GPUs of the cluster (max_gpus); nearest legal: 32"});
  set(30, 8, 1);
  EXPECT_EQ(
      problems()[0],
      "gpus: 30 is not a multiple of tensor_parallel 8 x pipeline_parallel 1 = 8; nearest legal: 24 or 32");
  set(40, 16, 3);
  EXPECT_NE(problems()[0].find("nearest legal: none, reduce the degrees of parallelism"), std::string::npos);
}

TEST_F(Check, NeedsDataParallelToAgree) {
  set(16, 2, 2);
  plan_.data_parallel = 3;
  EXPECT_EQ(problems(),
            Texts{"plan.data_parallel: 3 is not gpus 16 / (tensor_parallel 2 x pipeline_parallel 2) = 4; "
                  "leave it out, or write gpus: 12"});
}

TEST_F(Check, NeedsANetworkBetweenNodes) {
  cluster_.nics_per_node = 0;
  EXPECT_EQ(problems().size(), 1u);
  EXPECT_TRUE(
      problems()[0].starts_with("cluster.nics_per_node: 0 NICs leave 16 GPUs in nodes of 8 unconnected"));
  set(8, 1, 1);
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, NeedsNicsToBeSharedEvenly) {
  for (const std::int64_t nics : {1, 2, 4, 8}) {
    cluster_.nics_per_node = nics;
    EXPECT_EQ(problems(), Texts{}) << nics;
  }
  // More NICs than GPUs would stand idle.
  for (const std::int64_t nics : {3, 16}) {
    cluster_.nics_per_node = nics;
    EXPECT_EQ(problems(),
              Texts{"cluster.nics_per_node: " + std::to_string(nics) +
                    " NICs cannot be shared evenly by 8 GPUs; legal here: 1, 2, 4, 8; for several NICs per "
                    "GPU give one with their joint bandwidth"});
  }
}

TEST_F(Check, NeedsSlowGpusToExist) {
  cluster_.slow_gpus = {{15, 1.5}, {16, 1.5}};
  EXPECT_EQ(problems(), Texts{"cluster.slow_gpus[1].gpu: 16 is not the rank of a GPU; ranks here: 0 to 15"});
}

TEST_F(Check, NamesTheNearestBatches) {
  set(8, 1, 1);
  plan_.micro_batch_size = 3;
  plan_.global_batch_size = 100;
  EXPECT_EQ(
      problems(),
      Texts{"plan.global_batch_size: 100 is not a multiple of micro_batch_size 3 x data_parallel 8 = 24; "
            "nearest legal: 96 or 120"});
  plan_.global_batch_size = 16;  // 2 for each replica: a micro-batch of 1 or 2 would do
  EXPECT_EQ(
      problems(),
      Texts{"plan.global_batch_size: 16 is not a multiple of micro_batch_size 3 x data_parallel 8 = 24; "
            "nearest legal: 24; or micro_batch_size 1, 2"});
}

TEST_F(Check, NeedsGroupsOfMicroBatchesToInterleave) {
  set(16, 1, 4, 2);
  plan_.global_batch_size = 24;  // 6 micro-batches on 4 replicas; groups of 4 make 16 or 32
  EXPECT_EQ(problems(),
            Texts{"plan.global_batch_size: the global batch of 24 makes 6 micro-batches, but schedule: "
                  "interleaved needs a multiple of pipeline_parallel 4; nearest legal global_batch_size: 16 "
                  "or 32"});
}

TEST_F(Check, NeedsChunksAndScheduleToAgree) {
  set(16, 1, 1, 2);
  EXPECT_EQ(problems(),
            Texts{"plan.virtual_pipeline: 2 chunks need a pipeline; write virtual_pipeline: 1, or "
                  "pipeline_parallel of at least 2"});
  set(16, 1, 4, 2);
  plan_.schedule = ScheduleKind::kGpipe;
  EXPECT_EQ(problems(),
            Texts{"plan.schedule: gpipe runs one chunk per rank, not virtual_pipeline 2; write schedule: "
                  "interleaved or virtual_pipeline: 1"});
  set(16, 1, 4);
  plan_.schedule = ScheduleKind::kInterleaved;
  // 24 / 4 = 6 layers per rank make 2, 3 or 6 equal chunks.
  EXPECT_EQ(problems(),
            Texts{"plan.schedule: interleaved needs virtual_pipeline of at least 2 (model chunks per rank); "
                  "legal here: 2, 3, 6; or write schedule: 1f1b"});
  set(16, 1, 1);
  plan_.schedule = ScheduleKind::kInterleaved;
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, NeedsALayerForEveryStage) {
  set(64, 1, 32);
  // Largest number of stages up to 24 that divides 64 GPUs.
  EXPECT_EQ(problems(),
            Texts{"plan.pipeline_parallel: 32 stages are more than the 24 layers; largest legal: 16"});
  set(8, 1, 8, 4);
  plan_.global_batch_size = 8;
  EXPECT_EQ(problems(),
            Texts{"plan.virtual_pipeline: 4 x pipeline_parallel 8 = 32 chunks are more than the 24 layers; "
                  "largest legal: 3"});
}

TEST_F(Check, AllowsUnevenStages) {
  set(16, 1, 16);
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, NeedsALayoutThatAddsUp) {
  set(16, 1, 4);
  plan_.pipeline_layout = {0, 12, 12, 0};  // embedding and head alone on the outer stages
  EXPECT_EQ(problems(), Texts{});
  plan_.pipeline_layout = {12, 0, 12, 0};
  EXPECT_EQ(problems(),
            Texts{"plan.pipeline_layout[1]: a stage without layers; only the first and the last, which hold "
                  "embedding and head, may be empty"});
  plan_.pipeline_layout = {12, 13};
  EXPECT_EQ(
      problems(),
      (Texts{"plan.pipeline_layout: 2 entries, but pipeline_parallel 4 x virtual_pipeline 1 = 4 stages; "
             "give one for each",
             "plan.pipeline_layout: the entries add up to 25, not to the 24 layers of the model"}));
}

TEST_F(Check, LimitsRecomputedLayersToTheLargestStage) {
  set(16, 1, 4);
  plan_.recompute = {RecomputeGranularity::kFull, RecomputeMethod::kBlock, 6};
  EXPECT_EQ(problems(), Texts{});
  plan_.recompute.layers = 7;
  EXPECT_EQ(
      problems(),
      Texts{"plan.recompute.layers: 7 is more than the 6 layers of the largest stage; legal here: 1 to 6"});
  plan_.recompute.granularity = RecomputeGranularity::kSelective;
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, KnowsWhatRecomputationByOperatorsGoesWith) {
  set(16, 1, 4);
  plan_.recompute.granularity = RecomputeGranularity::kOperators;
  plan_.framework = Framework::kFsdp;
  EXPECT_EQ(problems(), Texts{});
  plan_.schedule = ScheduleKind::kZeroBubbleH1;
  plan_.recompute.partial_micro_batches = 1;
  plan_.transformer_engine = true;
  plan_.framework = Framework::kMegatron;
  const std::string others = "none, selective or full";
  EXPECT_EQ(
      problems(),
      (Texts{"plan.recompute: operators with software.framework megatron, but it is PyTorch's selective "
             "checkpoint, as torchtitan uses it; legal here: " +
                 others + ", or software.framework: fsdp",
             "plan.recompute: operators with software.transformer_engine true, whose multiplies are no "
             "operators that PyTorch could save; legal here: " +
                 others + ", or software.transformer_engine: false",
             "plan.recompute: operators with schedule zb-h1 is not supported by this version; legal "
             "here: " +
                 others + ", or schedule: 1f1b",
             "plan.recompute: operators with partial_micro_batches, which Megatron Core has for "
             "selective and full recomputation; legal here: granularity: selective or full, or no "
             "partial_micro_batches"}));
}

TEST_F(Check, CompilesOnlyPyTorchsLoss) {
  plan_.loss = Loss::kCompiled;
  plan_.framework = Framework::kFsdp;
  EXPECT_EQ(problems(), Texts{});
  set(16, 2, 1);
  plan_.framework = Framework::kMegatron;
  const std::string legal = "; legal here: standard or fused, or ";
  EXPECT_EQ(
      problems(),
      (Texts{"software.loss: compiled with software.framework megatron, which has kernels of its own for "
             "it" +
                 legal + "software.framework: fsdp or deepspeed",
             "software.loss: compiled with tensor_parallel 2, whose ranks share the logits, is not "
             "supported by this version" +
                 legal + "tensor_parallel: 1"}));
}

/// Six layers on each of four stages.
TEST_F(Check, LimitsWhatSomeMicroBatchesRecompute) {
  set(16, 1, 4);
  plan_.recompute.granularity = RecomputeGranularity::kFull;
  plan_.recompute.partial_micro_batches = 2;
  plan_.recompute.partial_layers = 5;
  EXPECT_EQ(problems(), Texts{});
  plan_.recompute.partial_layers = 6;
  const std::string message = " layers that other micro-batches recompute of a chunk; legal here: 0 to ";
  EXPECT_EQ(problems(), Texts{"plan.recompute.partial_layers: 6 is not less than the 6" + message + "5"});
  plan_.recompute.method = RecomputeMethod::kBlock;
  plan_.recompute.layers = 4;
  EXPECT_EQ(problems(), Texts{"plan.recompute.partial_layers: 6 is not less than the 4" + message + "3"});
  plan_.recompute.partial_layers = 0;
  set(16, 1, 1);
  EXPECT_EQ(problems(),
            Texts{"plan.recompute.partial_micro_batches: with pipeline_parallel 1 a single micro-batch is in "
                  "flight; write method: block with layers, the number of layers to recompute, or "
                  "pipeline_parallel of at least 2"});
}

/// One less than the first stage has in flight still leaves one to recompute.
TEST_F(Check, WarnsOfMicroBatchesOfWhichNoneRecomputes) {
  using enum ScheduleKind;
  for (const ScheduleKind schedule : {kGpipe, kOneFOneB, kInterleaved, kZeroBubbleH1, kZeroBubbleH2}) {
    for (const std::int64_t micro_batches : {4, 8, 40}) {
      set(4, 1, 4, schedule == kInterleaved ? 2 : 1);
      plan_.schedule = schedule;
      plan_.global_batch_size = micro_batches;
      plan_.recompute = {RecomputeGranularity::kFull};
      const std::size_t others = warned().size();
      const double most =
          schedule::peak_in_flight(schedule::build(plan_), 0) * static_cast<double>(plan_.virtual_pipeline);
      plan_.recompute.partial_micro_batches = std::llround(most) - 1;
      EXPECT_EQ(warned().size(), others) << to_string(schedule) << micro_batches;
      ++plan_.recompute.partial_micro_batches;
      EXPECT_EQ(warned().size(), others + 1) << to_string(schedule) << micro_batches;
    }
  }
}

TEST_F(Check, SurvivesAbsurdNumbersOfStages) {
  set(16, 1, 1);
  plan_.pipeline_parallel = plan_.virtual_pipeline = 1'000'000;
  plan_.recompute.granularity = RecomputeGranularity::kFull;
  EXPECT_FALSE(problems().empty());
}

TEST_F(Check, NeedsAPeakForThePrecision) {
  cluster_.gpu.peak_bf16 = 0;
  EXPECT_EQ(problems(),
            Texts{"plan.precision: bf16: the GPU chip has no bf16 peak; legal here: fp32 or fp16"});
  plan_.precision = Precision::kFp8;
  EXPECT_EQ(problems(), Texts{"plan.precision: fp8: the GPU chip has no fp8 peak; legal here: fp32 or fp16"});
  cluster_.gpu.peak_fp8 = 600e12;
  EXPECT_EQ(problems(),
            Texts{"plan.precision: fp8: the GPU chip has no bf16 peak, which attention and the head "
                  "need; legal here: fp32 or fp16"});
  cluster_.gpu.peak_bf16 = 300e12;
  EXPECT_EQ(problems(), Texts{});
}

TEST_F(Check, KnowsWhatEightBitsDoNotGoWith) {
  cluster_.gpu.peak_fp8 = 600e12;
  plan_.precision = Precision::kFp8;
  plan_.fp8.parameters = true;
  plan_.lora.rank = 8;
  EXPECT_EQ(problems(),
            Texts{"plan.fp8.parameters: true does not go with plan.lora, whose frozen weights are held in "
                  "bf16; write false"});
  plan_.lora.rank = 0;
  plan_.framework = Framework::kDeepSpeed;
  EXPECT_EQ(problems(),
            Texts{"plan.fp8.parameters: true does not go with framework deepspeed, which has no weights "
                  "in 8 bits; write false"});
}

TEST_F(Check, NeedsABucketAndAMicroBatchThatCanExist) {
  plan_.bucket_parameters = 0;
  EXPECT_EQ(problems(),
            Texts{"plan.bucket_parameters: 0 parameters make no bucket; the least is 1, and 40M is usual"});
  plan_.bucket_parameters = 1;
  model_.sequence_length = model_.max_position_embeddings = 100'000'000;
  plan_.micro_batch_size = 1'000'000;
  plan_.global_batch_size = 16'000'000;
  EXPECT_EQ(
      problems(),
      Texts{"plan.micro_batch_size: 1000000 sequences of 100000000 tokens are more than any memory could "
            "hold; reduce either"});
}

TEST_F(Check, LeavesOutRulesAboutUnreadFields) {
  model_.num_attention_heads = model_.num_key_value_heads = 52;
  set(20, 8, 1);
  EXPECT_EQ(problems().size(), 3u);           // heads, multiple of 8, whole nodes
  EXPECT_EQ(problems({"gpus"}).size(), 1u);   // heads
  EXPECT_EQ(problems({"model"}).size(), 2u);  // the two about GPUs
  EXPECT_EQ(problems({"cluster.gpus_per_node"}).size(), 2u);
  EXPECT_EQ(problems({"plan", "gpus"}).size(), 0u);
}

TEST_F(Check, DividesByNothingThatIsUnread) {
  // Fields that could not be read hold 0; the rules that remain must cope.
  plan_ = ParallelPlan{};
  plan_.gpus = plan_.pipeline_parallel = plan_.tensor_parallel = 0;
  plan_.data_parallel = plan_.micro_batch_size = plan_.global_batch_size = plan_.virtual_pipeline = 0;
  model_ = model::ModelSpec{};
  cluster_ = hardware::ClusterSpec{};
  EXPECT_EQ(problems({"gpus", "plan", "model", "cluster"}), Texts{});
  plan_.tensor_parallel = 3;
  model_.num_attention_heads = 4;
  EXPECT_EQ(problems({"gpus", "plan.pipeline_parallel", "plan.virtual_pipeline", "plan.data_parallel",
                      "plan.micro_batch_size", "plan.global_batch_size", "model.num_key_value_heads",
                      "model.intermediate_size", "model.sequence_length", "cluster"}),
            Texts{"plan.tensor_parallel: 3 does not divide the 4 attention heads; legal here: 1, 2, 4"});
}

TEST_F(Check, WarnsOfTensorParallelismAcrossNodes) {
  set(16, 8, 1);
  EXPECT_EQ(warned(), Texts{});
  set(16, 16, 1);
  EXPECT_EQ(warned(), Texts{"plan.tensor_parallel"});
}

TEST_F(Check, WarnsOfOrdersThatTakeTensorParallelismOutOfANode) {
  // With both replicas next to each other every second of a node's eight ranks is of the same group.
  set(16, 8, 1);
  plan_.order = {Axis::kData, Axis::kTensor, Axis::kPipeline};
  const Problems found = warnings(plan_, model_, cluster_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].field, "plan.order");
  EXPECT_EQ(
      found[0].message,
      "dp-tp-pp puts 4 of the 8 tensor-parallel ranks of a group into a node, so that their communication "
      "leaves it, which is slow");
  set(8, 8, 1);  // one node
  plan_.order = {Axis::kData, Axis::kTensor, Axis::kPipeline};
  EXPECT_EQ(warned(), Texts{});
}

TEST_F(Check, WarnsOfRingsThatShareNics) {
  set(16, 1, 1);
  cluster_.nics_per_node = 2;
  const Problems found = warnings(plan_, model_, cluster_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].field, "cluster.nics_per_node");
  EXPECT_EQ(found[0].message, "2 NICs for 8 GPUs let 4 data-parallel rings share each NIC");
  set(16, 8, 2);  // no data-parallel ring leaves a node
  plan_.global_batch_size *= 2;
  EXPECT_TRUE(warnings(plan_, model_, cluster_).empty());
}

/// Eight nodes, two below each leaf: a ring passes from leaf to leaf four times, and eight times where its
/// nodes are dealt out in turn.
TEST_F(Check, WarnsOfRingsThatCrossAnOversubscribedLevel) {
  set(64, 8, 1);
  cluster_.fabric.nodes_per_leaf = 2;
  cluster_.fabric.oversubscription = 4;
  Problems found = warnings(plan_, model_, cluster_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].field, "cluster.fabric.oversubscription");
  EXPECT_EQ(found[0].message,
            "the data-parallel rings of a stage cross between leaves 4 times, over uplinks with 25 % of the "
            "bandwidth below them");
  plan_.nodes = {0, 2, 4, 6, 1, 3, 5, 7};
  found = warnings(plan_, model_, cluster_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].message.find("leaves 8 times"), std::string::npos);
  cluster_.fabric.oversubscription = 1;
  EXPECT_TRUE(warnings(plan_, model_, cluster_).empty());
}

TEST_F(Check, WarnsOfANetworkFasterThanANode) {
  cluster_.nic.bandwidth = 400e9;
  EXPECT_EQ(warned(), Texts{"cluster.nic.bandwidth"});
}

TEST_F(Check, WarnsOfSequenceParallelismWithoutTensorParallelism) {
  plan_.sequence_parallel = true;
  EXPECT_EQ(warned(), Texts{"plan.sequence_parallel"});
}

TEST_F(Check, WarnsOfInterleavingWithoutSteadyState) {
  set(16, 1, 4, 2);
  plan_.global_batch_size = 4 * plan_.data_parallel;
  EXPECT_EQ(warned(), Texts{"plan.global_batch_size"});
  plan_.global_batch_size = 8 * plan_.data_parallel;
  EXPECT_EQ(warned(), Texts{});
}

}  // namespace
}  // namespace trainsim::plan
