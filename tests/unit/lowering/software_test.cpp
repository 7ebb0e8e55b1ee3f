// SPDX-License-Identifier: Apache-2.0
// What software settings change in the kernels of a layer: bytes and launches by hand, from
// docs/modelling.md.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/lowering/emitter.hpp"
#include "sim/lowering/ends.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using tests::gpt;

/// h = 512, s = 256, b = 2: a residual-stream tensor has b s h elements, a layer 12 h^2 weights.
constexpr double kElements = 2.0 * 256 * 512;
constexpr double kWeights = 12.0 * 512 * 512;

ParallelPlan one_gpu_plan() {
  return tests::split_plan({1}, 1, 2);
}

LayerPasses passes_of(const model::ModelSpec& model, const ParallelPlan& plan) {
  return layer_passes(model, plan, kernel_model(tests::round_cluster().gpu, plan), {});
}

/// Bytes of all kernels of a pass whose name contains these words.
double bytes_of(const Pass& pass, const std::string& words) {
  double total = 0;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) {
      if (kernel.name.find(words) != std::string::npos) total += kernel.bytes;
    }
  }
  return total;
}

TEST(Software, GradientsAreAddedInTheirMultiplyOrInAPassOfTheirOwn) {
  ParallelPlan plan = one_gpu_plan();
  const Pass fused = passes_of(gpt({}), plan).backward;
  EXPECT_EQ(bytes_of(fused, "gradient accumulation"), 0);
  plan.gradient_accumulation_fusion = false;
  // The product (2 bytes) is read, and the fp32 gradient read and written.
  const Pass separate = passes_of(gpt({}), plan).backward;
  EXPECT_EQ(bytes_of(separate, "gradient accumulation"), kWeights * (2 + 4 + 4));
  // The multiplies write 2 bytes instead of reading and writing 4.
  EXPECT_EQ(bytes_of(fused, "weight gradient") - bytes_of(separate, "weight gradient"), kWeights * (8 - 2));
  plan.gradient_bytes = 2;
  EXPECT_EQ(bytes_of(passes_of(gpt({}), plan).backward, "gradient accumulation"), kWeights * (2 + 2 + 2));
}

TEST(Software, PersistentNormsMoveFewerBytes) {
  ParallelPlan plan = one_gpu_plan();
  const LayerPasses persistent = passes_of(gpt({}), plan);
  EXPECT_EQ(bytes_of(persistent.forward, "norm"), 2 * kElements * 4.5);
  EXPECT_EQ(bytes_of(persistent.backward, "norm"), 2 * kElements * 7.2);
  plan.persistent_norm = false;
  const LayerPasses older = passes_of(gpt({}), plan);
  EXPECT_EQ(bytes_of(older.forward, "norm"), 2 * kElements * 6.2);
  EXPECT_EQ(bytes_of(older.backward, "norm"), 2 * kElements * 14.7);
  plan.fusion = plan::Fusion::kNone;
  const LayerPasses unfused = passes_of(gpt({}), plan);
  EXPECT_EQ(bytes_of(unfused.forward, "norm"), 2 * kElements * 4.5);
  EXPECT_EQ(bytes_of(unfused.backward, "norm"), 2 * kElements * 10.0);
}

/// h = 512, f = 2048 twice, s = 256, b = 2.
model::ModelSpec gated_gpt() {
  model::ModelSpec model = gpt({});
  model.activation = model::Activation::kSwiglu;
  return model;
}

/// Multiplies of a pass, by the number of their columns.
std::vector<double> multiplies_of(const Pass& pass, const std::string& name) {
  std::vector<double> flops;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) {
      if (kernel.name == name) flops.push_back(kernel.flops / (2.0 * 512 * 512));
    }
  }
  return flops;
}

/// 512 columns each of queries, keys and values, 2048 each of gate and up, in all three directions.
TEST(Software, LayersOfOneInputAreOneMultiplyOrOneEach) {
  using Columns = std::vector<double>;
  ParallelPlan plan = one_gpu_plan();
  const LayerPasses fused = passes_of(gated_gpt(), plan);
  EXPECT_EQ(multiplies_of(fused.forward, "qkv"), Columns{3 * 512});
  EXPECT_EQ(multiplies_of(fused.forward, "mlp in"), Columns{2 * 2048});
  EXPECT_EQ(bytes_of(fused.backward, "input gradient add"), 0);
  plan.fused_linears = {false, false};
  const LayerPasses apart = passes_of(gated_gpt(), plan);
  for (const char* direction : {"", ": input gradient", ": weight gradient"}) {
    const Pass& pass = *direction == 0 ? apart.forward : apart.backward;
    EXPECT_EQ(multiplies_of(pass, std::string("qkv") + direction), (Columns{512, 512, 512}));
    EXPECT_EQ(multiplies_of(pass, std::string("mlp in") + direction), (Columns{2048, 2048}));
  }
  EXPECT_EQ(multiplies_of(apart.forward, "mlp out"), multiplies_of(fused.forward, "mlp out"));
}

/// Two sums of queries', keys' and values' gradients and one of the MLP's: 6 bytes each, or a read of 2 where
/// a compiler joins them with what follows. Ranks that exchange the sum have it written: 2 + 2 + 2 + 2, and 2
/// + 2
/// + 2.
TEST(Software, InputGradientsOfLayersApartAreAddedUp) {
  ParallelPlan plan = one_gpu_plan();
  plan.fused_linears = {false, false};
  EXPECT_EQ(bytes_of(passes_of(gated_gpt(), plan).backward, "input gradient add"), kElements * 6 * 3);
  plan.fusion = plan::Fusion::kCompiled;
  EXPECT_EQ(bytes_of(passes_of(gated_gpt(), plan).backward, "input gradient add"), kElements * 2 * 3);
  plan = tests::split_plan({2}, 1, 2);
  plan.fused_linears = {false, false};
  plan.fusion = plan::Fusion::kCompiled;
  EXPECT_EQ(bytes_of(passes_of(gated_gpt(), plan).backward, "input gradient add"), kElements * (8 + 6));
}

/// A second gradient of the input, 2 s b h bytes, lies beside the first while they are added up.
TEST(Software, LayersApartHoldAnotherInputGradient) {
  ParallelPlan plan = one_gpu_plan();
  const auto others = [&plan](const char* name) {
    const Tape tape = layer_tape(gated_gpt(), plan);
    Bytes bytes = 0;
    for (const MemoryChange& change : tape.backward()) {
      if (change.allocates &&
          tape.text(change.name) == std::string(name) + " input gradient of another module")
        bytes += change.bytes;
    }
    return bytes;
  };
  EXPECT_EQ(others("qkv") + others("mlp in"), 0);
  plan.fused_linears = {false, false};
  EXPECT_EQ(others("qkv"), 2 * static_cast<Bytes>(kElements));
  EXPECT_EQ(others("mlp in"), 2 * static_cast<Bytes>(kElements));
  plan.fusion = plan::Fusion::kCompiled;
  EXPECT_EQ(others("qkv"), 2 * 2 * static_cast<Bytes>(kElements));
  EXPECT_EQ(others("mlp in"), 2 * static_cast<Bytes>(kElements));
}

/// The last multiply of an MLP, 2 s b h f operations, does not run again; nor does the reduction behind it.
TEST(Software, EarlyStopLeavesOutTheLastMultiply) {
  ParallelPlan plan = tests::split_plan({2}, 1, 2);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  model::ModelSpec model = gated_gpt();
  model.dropout = 0;
  const auto count = [](const Pass& pass, const std::string& name) {
    return multiplies_of(pass, name).size();
  };
  const auto reductions = [](const Pass& pass) {
    return std::count_if(pass.begin(), pass.end(),
                         [](const Step& step) { return step.kind == StepKind::kCollective; });
  };
  const Pass whole = passes_of(model, plan).recompute;
  EXPECT_EQ(count(whole, "mlp out"), 1U);
  plan.checkpoint_early_stop = true;
  const LayerPasses passes = passes_of(model, plan);
  EXPECT_EQ(count(passes.forward, "mlp out"), 1U);
  EXPECT_EQ(count(passes.recompute, "mlp out"), 0U);
  EXPECT_EQ(count(passes.recompute, "mlp in"), 1U);
  EXPECT_EQ(reductions(passes.recompute), reductions(whole) - 1);
  for (const Step& step : passes.recompute) {
    if (step.kind == StepKind::kCompute) {
      EXPECT_EQ(step.cause, program::Cause::kRecompute);
    }
  }
}

/// Dropout keeps a mask; functions save what they take when they have run; a checkpoint of two layers needs
/// the first one's output.
TEST(Software, EarlyStopNeedsAMultiplyAtTheEnd) {
  model::ModelSpec model = gated_gpt();
  model.dropout = 0;
  ParallelPlan plan = one_gpu_plan();
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  const auto skips = [&] { return skips_last_multiply(model, plan, model::LayerKind::kDense); };
  EXPECT_FALSE(skips());
  plan.checkpoint_early_stop = true;
  EXPECT_TRUE(skips());
  EXPECT_FALSE(skips_last_multiply(model, plan, model::LayerKind::kExpert));
  plan.recompute.layers = 2;
  EXPECT_FALSE(skips());
  plan.recompute.method = plan::RecomputeMethod::kBlock;
  EXPECT_TRUE(skips());
  plan.lora.rank = 8;
  EXPECT_FALSE(skips());
  plan.lora.rank = 0;
  plan.transformer_engine = true;
  EXPECT_FALSE(skips());
  plan.transformer_engine = false;
  plan.precision = plan::Precision::kFp8;
  EXPECT_FALSE(skips());
  plan.fusion = plan::Fusion::kCompiled;
  EXPECT_TRUE(skips());
  model.dropout = 0.1;
  EXPECT_FALSE(skips());
}

/// The output of the layer, 2 s b h bytes, is not made again.
TEST(Software, EarlyStopMakesNoOutputAgain) {
  model::ModelSpec model = gated_gpt();
  model.dropout = 0;
  ParallelPlan plan = one_gpu_plan();
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  const auto made_again = [&] {
    Bytes bytes = 0;
    for (const MemoryChange& change : layer_tape(model, plan).again(true))
      bytes += change.allocates ? change.bytes : 0;
    return bytes;
  };
  const Bytes whole = made_again();
  plan.checkpoint_early_stop = true;
  // The multiply's output and the sum with the residual.
  EXPECT_EQ(made_again(), whole - 2 * 2 * static_cast<Bytes>(kElements));
}

TEST(Software, AlibiIsWrittenOutForAllScores) {
  model::ModelSpec model = gpt({});
  model.attention = model::Attention::kStandard;
  const ParallelPlan plan = one_gpu_plan();
  EXPECT_EQ(bytes_of(passes_of(model, plan).forward, "alibi"), 0);
  model.position_embedding = model::PositionEmbedding::kAlibi;
  const double scores = 2.0 * static_cast<double>(model.num_attention_heads) * 256 * 256;
  EXPECT_EQ(bytes_of(passes_of(model, plan).forward, "alibi"), scores * 4);
}

TEST(Software, StandardAttentionCopiesItsTensors) {
  model::ModelSpec model = gpt({});
  model.attention = model::Attention::kStandard;
  const LayerPasses passes = passes_of(model, one_gpu_plan());
  EXPECT_EQ(bytes_of(passes.forward, "layout"), kElements * 4);
  // The gradient of the output, and those of queries, keys and values.
  EXPECT_EQ(bytes_of(passes.backward, "layout"), kElements * 4 + 3 * kElements * 4);
}

/// The most that a trace holds at once of what is made in fp32 of each logit.
Bytes logits_of(const Tape& tape, const MemoryTrace& trace, Bytes kept) {
  const auto is_of_logits = [](const std::string& name) {
    const auto has = [&name](const char* word) { return name.find(word) != std::string::npos; };
    return has("logits") && (has("fp32") || has("softmax") || has("maximum"));
  };
  Bytes now = kept;
  Bytes most = now;
  for (const MemoryChange& change : trace) {
    if (!is_of_logits(tape.text(change.name))) continue;
    now += change.allocates ? change.bytes : -change.bytes;
    most = std::max(most, now);
  }
  return most;
}

/// Copy and log-softmax, then that with two gradients: 8 and 12 bytes of each logit in fp32. Where ranks
/// share the logits PyTorch's loss is written in Python, with one tensor more each time.
TEST(Software, PyTorchsLossOfSharedLogitsHoldsOneTensorMore) {
  for (const auto& [framework, tensors] :
       {std::pair{plan::Framework::kFsdp, Bytes{1}}, std::pair{plan::Framework::kDeepSpeed, Bytes{0}}}) {
    ParallelPlan plan = tests::split_plan({2, 1, 1, 1});
    plan.framework = framework;
    const Tape tape = head_tape(gpt({}), plan);
    const Bytes logits = 256 * 8192 / 2;
    EXPECT_EQ(logits_of(tape, tape.forward(), 0), (8 + 4 * tensors) * logits);
    EXPECT_EQ(logits_of(tape, tape.backward(), 4 * logits), (12 + 4 * tensors) * logits);
    plan.tensor_parallel = 1;
    const Tape whole = head_tape(gpt({}), plan);
    EXPECT_EQ(logits_of(whole, whole.forward(), 0), 8 * 2 * logits);
  }
}

/// A compiled loss keeps the logits, and makes their gradient from them: 2 + 2 bytes of each, and none in
/// fp32.
TEST(Software, ACompiledLossMakesNoTensorsInFp32) {
  ParallelPlan plan = tests::split_plan({});
  plan.framework = plan::Framework::kFsdp;
  const Bytes logits = Bytes{256} * 8192;
  // The inputs of the final norm and of the output projection, 2 bytes of 512 each.
  const Bytes inputs = Bytes{4} * 256 * 512;
  EXPECT_EQ(head_tape(gpt({}), plan).kept(), inputs + 4 * logits);
  plan.loss = plan::Loss::kCompiled;
  const Tape compiled = head_tape(gpt({}), plan);
  EXPECT_EQ(compiled.kept(), inputs + 2 * logits);
  EXPECT_EQ(logits_of(compiled, compiled.forward(), 0), 0);
  Bytes gradients = 0;
  for (const MemoryChange& change : compiled.backward()) {
    if (change.allocates && compiled.text(change.name).ends_with("logits")) gradients += change.bytes;
  }
  EXPECT_EQ(gradients, 2 * logits);
}

/// Bytes for each logit, forward and backward, whether the layers are compiled or not.
TEST(Software, LossesMoveTheirBytes) {
  const auto bytes = [](plan::Framework framework, plan::Loss loss, plan::Fusion fusion) {
    ParallelPlan plan = tests::split_plan({});
    plan.framework = framework;
    plan.loss = loss;
    plan.fusion = fusion;
    const Ends ends = build_ends(gpt({}), plan, kernel_model(tests::round_cluster().gpu, plan), {});
    return std::pair{bytes_of(ends.head_forward, "cross-entropy") / (256 * 8192),
                     bytes_of(ends.head_backward, "cross-entropy") / (256 * 8192)};
  };
  using plan::Framework;
  using plan::Loss;
  for (const plan::Fusion fusion : {plan::Fusion::kNone, plan::Fusion::kStandard, plan::Fusion::kCompiled}) {
    EXPECT_EQ(bytes(Framework::kMegatron, Loss::kStandard, fusion), (std::pair{38.0, 14.0}));
    // Copy 6, log-softmax 12; clear 4, log-softmax's gradient 16, cast 6.
    EXPECT_EQ(bytes(Framework::kFsdp, Loss::kStandard, fusion), (std::pair{18.0, 26.0}));
    EXPECT_EQ(bytes(Framework::kFsdp, Loss::kFused, fusion), (std::pair{6.0, 4.0}));
    // Two reads; a read and a write.
    EXPECT_EQ(bytes(Framework::kFsdp, Loss::kCompiled, fusion), (std::pair{4.0, 4.0}));
  }
}

Seconds launch_seconds(const ParallelPlan& plan) {
  hardware::GpuSpec gpu = tests::round_cluster().gpu;
  const cost::KernelModel kernels = kernel_model(gpu, plan);
  program::Program program;
  Emitter emitter(program, kernels);
  emitter.register_pass(layer_passes(gpt({}), plan, kernels, {100e9}).forward);
  Seconds total = 0;
  for (const program::Segment& segment : program.segments) {
    EXPECT_EQ(segment.blocking, plan.launch == plan::Launch::kBlocking);
    total += segment.launch_seconds;
  }
  return total;
}

TEST(Software, ABlockingHostLaunchesCollectivesToo) {
  ParallelPlan plan = tests::split_plan({4}, 1, 2);
  plan.sequence_parallel = false;
  const Seconds eager = launch_seconds(plan);
  plan.launch = plan::Launch::kBlocking;
  // Two all-reduces at 2 us.
  EXPECT_NEAR(launch_seconds(plan) - eager, 2 * 2e-6, 1e-12);
}

TEST(Software, TransfersThatAreNotOverlappedKeepTheHostBusy) {
  ParallelPlan plan = tests::split_plan({1, 2}, 1, 1);
  plan.overlap_point_to_point = false;
  int synchronised = 0;
  for (const program::Program& program : tests::programs_of(gpt({}), plan)) {
    for (const program::Instruction& instruction : program.stream(program::Stream::kCompute)) {
      if (instruction.op != program::Opcode::kSynchronize) continue;
      ++synchronised;
      EXPECT_NEAR(instruction.amount, 8 * 2e-6, 1e-15);
    }
  }
  // Each micro-batch arrives once forward on the second stage, and once backward on the first.
  EXPECT_EQ(synchronised, 2 * plan.micro_batches());
}

}  // namespace
}  // namespace trainsim::lowering
