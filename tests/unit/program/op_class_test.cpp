// SPDX-License-Identifier: Apache-2.0
// Which operation every kernel of a transformer belongs to.
#include "sim/base/op_class.hpp"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/lowering/support.hpp"

namespace trainsim::program {
namespace {

/// Operations of all kernels of a step on two stages, by the kernels' names.
std::map<std::string, std::set<std::string>> kernels_by_op(
    const model::ModelSpec& model, plan::Fusion fusion, std::int64_t context = 1,
    plan::ContextCommunication communication = plan::ContextCommunication::kP2p) {
  plan::ParallelPlan plan = tests::split_plan({1, 2}, 2);
  plan.context_parallel = context;
  plan.context_communication = communication;
  plan.gpus *= context;
  plan.fusion = fusion;
  plan.gradient_accumulation_fusion = false;
  plan.loss_metrics = 1;
  std::map<std::string, std::set<std::string>> result;
  for (const Program& program : tests::programs_of(model, plan)) {
    for (const Segment& segment : program.segments) {
      for (const Kernel& kernel : segment.kernels) {
        const std::optional<OpClass> op = op_class(kernel.kind, kernel.name);
        result[op ? to_string(*op) : "none"].insert(kernel.name);
      }
    }
  }
  return result;
}

TEST(OpClass, EveryKernelOfAGptHasItsOperation) {
  const std::map<std::string, std::set<std::string>> kernels =
      kernels_by_op(tests::gpt({2}), plan::Fusion::kStandard);
  // All of the attention core, multiplies too, but not its output projection.
  const std::set<std::string> attention = {"attention scores",
                                           "scale + mask + softmax",
                                           "attention dropout",
                                           "attention values",
                                           "attention layout",
                                           "attention layout backward",
                                           "attention values: probability gradient",
                                           "attention values: value gradient",
                                           "attention dropout backward",
                                           "softmax backward",
                                           "attention scores: query gradient",
                                           "attention scores: key gradient",
                                           "qkv gradient layout"};
  EXPECT_EQ(kernels.at("attention"), attention);
  std::set<std::string> matmul;
  for (const char* name : {"qkv", "attention output", "mlp in", "mlp out", "logits"}) {
    matmul.insert(name);
    matmul.insert(std::string(name) + ": input gradient");
    matmul.insert(std::string(name) + ": weight gradient");
  }
  EXPECT_EQ(kernels.at("matmul"), matmul);
  EXPECT_EQ(kernels.at("norm"), (std::set<std::string>{"norm", "norm backward"}));
  EXPECT_EQ(kernels.at("activation"), (std::set<std::string>{"activation", "activation backward"}));
  EXPECT_EQ(kernels.at("residual"),
            (std::set<std::string>{"bias + dropout + residual", "residual gradient add", "dropout backward",
                                   "bias gradient"}));
  EXPECT_EQ(kernels.at("embedding"), (std::set<std::string>{"embedding lookup", "position add",
                                                            "embedding dropout", "embedding gradient"}));
  EXPECT_EQ(kernels.at("loss"),
            (std::set<std::string>{"softmax cross-entropy", "softmax cross-entropy backward",
                                   "metrics of the loss"}));
  EXPECT_EQ(kernels.at("accumulation"), std::set<std::string>{"gradient accumulation"});
  EXPECT_EQ(kernels.at("optimizer"), (std::set<std::string>{"gradient check", "gradient norm", "adam",
                                                            "parameters from fp32", "clear gradients"}));
  EXPECT_EQ(kernels.size(), 9U);
}

/// All that sharing a sequence adds belongs to attention.
TEST(OpClass, OfContextParallelKernelsIsAttention) {
  model::ModelSpec model = tests::gpt({2});
  model.attention = model::Attention::kFlash;
  auto alone = kernels_by_op(model, plan::Fusion::kStandard);
  alone.erase("attention");
  for (const plan::ContextCommunication way :
       {plan::ContextCommunication::kP2p, plan::ContextCommunication::kAllGather,
        plan::ContextCommunication::kAllToAll}) {
    auto shared = kernels_by_op(model, plan::Fusion::kStandard, 2, way);
    shared.erase("attention");
    // Ranks that share a sequence add up their gradients.
    shared.at("optimizer").erase("gradient average");
    EXPECT_EQ(shared, alone) << to_string(way);
  }
}

TEST(OpClass, EveryKernelOfALlamaHasItsOperation) {
  model::ModelSpec model = tests::gpt({2});
  model.dropout = 0;
  model.linear_bias = false;
  model.activation = model::Activation::kSwiglu;
  model.normalization = model::Normalization::kRmsNorm;
  model.position_embedding = model::PositionEmbedding::kRotary;
  model.attention = model::Attention::kFlash;
  model.embedding_norm = true;
  const std::map<std::string, std::set<std::string>> kernels = kernels_by_op(model, plan::Fusion::kNone);
  EXPECT_EQ(kernels.at("attention"), (std::set<std::string>{"attention", "attention backward"}));
  EXPECT_EQ(kernels.at("rotary"), std::set<std::string>{"rotary"});
  EXPECT_EQ(kernels.at("activation"),
            (std::set<std::string>{"gated activation", "gated activation backward"}));
  EXPECT_EQ(kernels.at("norm"),
            (std::set<std::string>{"norm", "norm backward", "embedding norm", "embedding norm backward"}));
  EXPECT_EQ(kernels.at("residual"), (std::set<std::string>{"residual add", "residual gradient add"}));
}

TEST(OpClass, MeasuredTimesBelongToNone) {
  EXPECT_EQ(op_class(KernelKind::kProfiled, "forward"), std::nullopt);
}

TEST(OpClass, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpClass op : kAllOpClasses) names.insert(to_string(op));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kOpClasses));
}

}  // namespace
}  // namespace trainsim::program
