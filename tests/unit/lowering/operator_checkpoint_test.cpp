// SPDX-License-Identifier: Apache-2.0
// Checkpoints that save the outputs of some operators, by hand from torchtitan's policy: attention,
// reduce-scatters and every other multiply, of which in a Llama layer queries (1), values (3), gate (5) and
// the MLP's output (7) are saved, and keys (2), output projection (4) and up (6) run again.
#include "sim/lowering/operator_checkpoint.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/config/experiment.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::Fusion;
using plan::ParallelPlan;
using program::CollectiveOp;
using tests::gpt;
using tests::split_plan;

ParallelPlan plan_of(Fusion fusion, std::int64_t tensor = 1, bool sequence = false) {
  ParallelPlan plan = split_plan({tensor});
  plan.framework = plan::Framework::kFsdp;
  plan.recompute.granularity = plan::RecomputeGranularity::kOperators;
  plan.fusion = fusion;
  plan.sequence_parallel = sequence;
  plan.fused_linears = {false, false};
  return plan;
}

/// h = 4096, 32 heads and 8 of keys and values of 128, f = 14336, s = 8192.
model::ModelSpec llama() {
  return config::load_model("llama3-8b");
}
constexpr std::int64_t kTokens = 8192;

/// h = 512, 8 heads, f = 2048, s = 256; no biases, no dropout, fused attention.
model::ModelSpec plain_gpt() {
  model::ModelSpec model = gpt({});
  model.attention = model::Attention::kFlash;
  model.linear_bias = false;
  model.dropout = 0;
  return model;
}

/// Per token of it: input, queries, values and attention's output h each, the MLP's first multiply 4 h, in 2
/// bytes; 4 bytes of each of 8 heads. And of all tokens.
constexpr Bytes kGptKeeps = Bytes{256} * (2 * 8 * 512 + 4 * 8);

/// The same as it was in 2022.
model::ModelSpec old_gpt() {
  return gpt({});
}

Bytes left(const MemoryTrace& trace) {
  Bytes bytes = 0;
  for (const MemoryChange& change : trace) bytes += change.allocates ? change.bytes : -change.bytes;
  return bytes;
}

LayerPasses passes_of(const model::ModelSpec& model, const ParallelPlan& plan) {
  return layer_passes(model, plan, kernel_model(tests::round_cluster().gpu, plan), {100e9});
}

Flops flops_of(const Pass& pass) {
  Flops total = 0;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) total += kernel.flops;
  }
  return total;
}

std::vector<std::string> kernels_of(const Pass& pass) {
  std::vector<std::string> names;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) names.push_back(kernel.name);
  }
  return names;
}

std::vector<CollectiveOp> collectives_of(const Pass& pass) {
  std::vector<CollectiveOp> ops;
  for (const Step& step : pass) {
    if (step.kind == StepKind::kCollective || step.kind == StepKind::kStartCollective) ops.push_back(step.op);
  }
  return ops;
}

TEST(SavedMultiplies, AreEveryOtherOneFromTheFirst) {
  const SavedMultiplies gated(llama(), plan_of(Fusion::kNone));
  EXPECT_TRUE(gated.queries && gated.values && gated.mlp_gate && gated.mlp_out);
  EXPECT_FALSE(gated.keys || gated.attention_output || gated.mlp_up);
  // With one input of the MLP instead of two the sixth multiply is the last.
  const SavedMultiplies plain(plain_gpt(), plan_of(Fusion::kNone));
  EXPECT_TRUE(plain.queries && plain.values && plain.mlp_gate);
  EXPECT_FALSE(plain.keys || plain.attention_output || plain.mlp_up || plain.mlp_out);
}

/// qkv (1) and gate with up (3), but neither the output projection (2) nor the MLP's output (4).
TEST(SavedMultiplies, CountFusedLinearsAsOne) {
  ParallelPlan plan = plan_of(Fusion::kNone);
  plan.fused_linears = {true, true};
  const SavedMultiplies fused(llama(), plan);
  EXPECT_TRUE(fused.queries && fused.keys && fused.values && fused.mlp_gate && fused.mlp_up);
  EXPECT_FALSE(fused.attention_output || fused.mlp_out);
  // 1, 3 and 4 of those with three for attention: queries, values, and both inputs of the MLP as fifth.
  plan.fused_linears = {false, true};
  const SavedMultiplies half(llama(), plan);
  EXPECT_TRUE(half.queries && half.values && half.mlp_gate && half.mlp_up);
  EXPECT_FALSE(half.keys || half.attention_output || half.mlp_out);
}

TEST(SavedMultiplies, AreNoneWithBiases) {
  const SavedMultiplies saved(old_gpt(), plan_of(Fusion::kNone));
  EXPECT_FALSE(saved.queries || saved.keys || saved.values || saved.attention_output || saved.mlp_gate ||
               saved.mlp_up || saved.mlp_out);
}

/// Per token: input, queries and attention's output 4096 each, values 1024, gate 14336, in 2 bytes; and 4
/// bytes of each of 32 heads: 55,424. Nothing uses the MLP's output, so that a compiler does not save it.
TEST(OperatorCheckpoint, OfACompiledLlamaKeepsWhatIsUsed) {
  EXPECT_EQ(layer_tape(llama(), plan_of(Fusion::kCompiled)).kept(Keep::kInput),
            kTokens * (2 * (3 * 4096 + 1024 + 14336) + 4 * 32));
}

/// The 4096 of the MLP's output besides: 521,142,272 bytes.
TEST(OperatorCheckpoint, OfAnEagerLlamaKeepsAllThatThePolicySaves) {
  for (const Fusion fusion : {Fusion::kNone, Fusion::kStandard})
    EXPECT_EQ(layer_tape(llama(), plan_of(fusion)).kept(Keep::kInput), 521'142'272);
}

TEST(OperatorCheckpoint, OfAGptKeepsTheMlpsInnerLayer) {
  for (const Fusion fusion : {Fusion::kStandard, Fusion::kCompiled})
    EXPECT_EQ(layer_tape(plain_gpt(), plan_of(fusion)).kept(Keep::kInput), kGptKeeps);
}

/// Multiplies with biases and attention in single operations are not on the list.
TEST(OperatorCheckpoint, OfA2022GptKeepsItsInput) {
  EXPECT_EQ(layer_tape(old_gpt(), plan_of(Fusion::kStandard)).kept(Keep::kInput), 256 * 2 * 512);
}

/// On 8 ranks, per token in 2 bytes: input 512, queries 512, values 128, attention's output 512, the output
/// projection after its reduce-scatter 512, gate 1792; 4 bytes of each of 4 heads. Eager PyTorch also saves
/// the MLP's output, of all ranks before its reduce-scatter (4096), and after (512).
TEST(OperatorCheckpoint, KeepsWhatIsScattered) {
  const Bytes used = Bytes{2} * (512 + 512 + 128 + 512 + 512 + 1792) + Bytes{4} * 4;
  EXPECT_EQ(layer_tape(llama(), plan_of(Fusion::kCompiled, 8, true)).kept(Keep::kInput), kTokens * used);
  EXPECT_EQ(layer_tape(llama(), plan_of(Fusion::kNone, 8, true)).kept(Keep::kInput),
            kTokens * (used + Bytes{2} * (4096 + 512)));
}

/// What all-reduces have added up is made again, with them.
TEST(OperatorCheckpoint, KeepsNothingOfAllReduces) {
  const Bytes used = 2 * (4096 + 512 + 128 + 512 + 1792) + 4 * 4;
  EXPECT_EQ(layer_tape(llama(), plan_of(Fusion::kCompiled, 8)).kept(Keep::kInput), kTokens * used);
}

/// Per token in bytes, of an eager Llama: a norm's input (2 h), its copy in fp32 (4 h) and before the weight
/// (2 h), twice; two norm outputs (4 h); queries, and keys and values repeated for all heads (6 h);
/// attention's output (2 h) and 4 * 32; gate, up, activated gate and product (8 f): 229,504. With the MLP's
/// output (2 h), which nothing uses, there are 237,696 when backward begins, 63,616 of them from the first
/// forward.
TEST(OperatorCheckpoint, BringsBackWhatBackwardNeeds) {
  const Tape tape = layer_tape(llama(), plan_of(Fusion::kNone));
  EXPECT_EQ(tape.kept(), kTokens * 229'504);
  EXPECT_EQ(left(tape.again(true)), kTokens * (237'696 - 63'616));
}

TEST(OperatorCheckpoint, LeavesNothingBehind) {
  for (const model::ModelSpec& model : {llama(), plain_gpt(), old_gpt()}) {
    for (const Fusion fusion : {Fusion::kNone, Fusion::kStandard, Fusion::kCompiled}) {
      for (const bool sequence : {false, true}) {
        const Tape tape = layer_tape(model, plan_of(fusion, sequence ? 4 : 1, sequence));
        EXPECT_EQ(left(tape.forward(Keep::kInput)) + left(tape.again(true)) + left(tape.backward()), 0);
      }
    }
  }
}

/// 2 h (1024 + 4096 + 14336) per token, and none of attention.
TEST(OperatorCheckpoint, OfALlamaRepeatsKeysOutputProjectionAndUp) {
  for (const Fusion fusion : {Fusion::kNone, Fusion::kCompiled}) {
    const LayerPasses passes = passes_of(llama(), plan_of(fusion));
    EXPECT_DOUBLE_EQ(flops_of(passes.recompute), kTokens * 159'383'552.0);
    EXPECT_DOUBLE_EQ(flops_of(passes.backward), 2 * flops_of(passes.forward));
    EXPECT_EQ(kernels_of(passes.recompute),
              (std::vector<std::string>{"norm", "qkv", "rotary", "attention output",
                                        fusion == Fusion::kNone ? "residual add" : "bias + residual", "norm",
                                        "mlp in", "gated activation"}));
    for (const Step& step : passes.recompute) EXPECT_EQ(step.cause, program::Cause::kRecompute);
  }
}

/// All but the last multiply: 2 (3 + 1 + 4) h^2; and attention's two, 4 s h.
TEST(OperatorCheckpoint, OfA2022GptRepeatsAllButTheLastMultiply) {
  const LayerPasses passes = passes_of(old_gpt(), plan_of(Fusion::kStandard));
  EXPECT_DOUBLE_EQ(flops_of(passes.recompute), 256 * (16.0 * 512 * 512 + 4.0 * 256 * 512));
}

/// Gathers run again, once for the multiplies that are repeated and for the gradients of weights.
TEST(OperatorCheckpoint, GathersInputsOnce) {
  using enum CollectiveOp;
  for (const Fusion fusion : {Fusion::kNone, Fusion::kCompiled}) {
    const LayerPasses passes = passes_of(llama(), plan_of(fusion, 4, true));
    EXPECT_EQ(collectives_of(passes.recompute), (std::vector{kAllGather, kAllGather}));
    EXPECT_EQ(collectives_of(passes.backward),
              (std::vector{kAllGather, kReduceScatter, kAllGather, kReduceScatter}));
    // Only eager PyTorch multiplies for what the reduce-scatter that is saved would take.
    const double widths = 1024 + 14336 + (fusion == Fusion::kNone ? 4096 : 0);
    EXPECT_DOUBLE_EQ(flops_of(passes.recompute), kTokens * 2 * 4096 * widths / 4);
  }
}

TEST(OperatorCheckpoint, ReducesTheOutputProjectionAgain) {
  const LayerPasses passes = passes_of(llama(), plan_of(Fusion::kCompiled, 4));
  EXPECT_EQ(collectives_of(passes.recompute), std::vector{CollectiveOp::kAllReduce});
}

/// Two stages of two layers each, of which the first holds two micro-batches.
TEST(OperatorCheckpoint, HoldsAllLayersOfTheMicroBatchesInFlight) {
  model::ModelSpec model = plain_gpt();
  model.num_layers = 4;
  ParallelPlan plan = plan_of(Fusion::kStandard);
  plan.pipeline_parallel = plan.gpus = 2;
  plan.global_batch_size = 8;
  EXPECT_EQ(tests::of(tests::memory_of(model, plan).front().largest, program::MemoryCategory::kActivations),
            4 * kGptKeeps);
}

}  // namespace
}  // namespace trainsim::lowering
