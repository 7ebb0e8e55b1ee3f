// SPDX-License-Identifier: Apache-2.0
// What software settings change in the kernels of a layer: bytes and launches by hand, from
// docs/modelling.md.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "sim/lowering/emitter.hpp"
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

/// Sums of a pass registered for a plan: the host's time for launching it.
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
