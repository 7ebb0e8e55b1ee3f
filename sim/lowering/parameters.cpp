// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/layer.hpp"

namespace trainsim::lowering {

std::int64_t layer_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  const Shapes shapes(model, plan);
  const std::int64_t h = shapes.hidden;
  const std::int64_t qkv = shapes.query_width + 2 * shapes.key_value_width;
  const std::int64_t inner = shapes.mlp_inputs * shapes.ffn;
  const std::int64_t norm = model.normalization == model::Normalization::kLayerNorm ? 2 * h : h;
  std::int64_t parameters = h * qkv + shapes.query_width * h + h * inner + shapes.ffn * h + 2 * norm;
  if (model.linear_bias) parameters += qkv + h + inner + h;
  return parameters;
}

std::int64_t embedding_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  return static_cast<std::int64_t>(model::embedding_parameters(model, Shapes(model, plan).vocab));
}

std::int64_t head_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                      bool head_holds_copy) {
  model::ModelSpec untied = model;
  untied.tie_word_embeddings = model.tie_word_embeddings && !head_holds_copy;
  return static_cast<std::int64_t>(model::head_parameters(untied, Shapes(model, plan).vocab));
}

}  // namespace trainsim::lowering
