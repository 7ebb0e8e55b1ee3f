// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/lowering/layer.hpp"

namespace trainsim::lowering {

namespace {

/// Bytes of the attention core that selective recomputation drops: softmax output, dropout mask and
/// dropped-out probabilities (5 a s^2 b with dropout), or the log-sum-exp of flash attention.
Bytes core_bytes(const model::ModelSpec& model, const Shapes& shapes) {
  const Bytes rows = shapes.tokens * shapes.heads;
  if (model.attention != model::Attention::kStandard) return 4 * rows;
  const Bytes scores = rows * model.sequence_length;
  const Bytes softmax = scores * shapes.element;
  return model.dropout > 0 ? 2 * softmax + scores : softmax;
}

}  // namespace

LayerMemory layer_memory(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  const Shapes shapes(model, plan);
  const Bytes residual = shapes.residual_elements * shapes.element;
  const Bytes mask = model.dropout > 0 ? shapes.residual_elements : 0;
  const Bytes inner = shapes.tokens * shapes.ffn * shapes.element;
  const Bytes queries = shapes.tokens * shapes.query_width * shapes.element;
  const Bytes keys_and_values = 2 * shapes.tokens * shapes.key_value_width * shapes.element;
  const Bytes core = core_bytes(model, shapes);
  const bool selective = plan.recompute.granularity == plan::RecomputeGranularity::kSelective;
  LayerMemory memory;
  // Attention: norm input, qkv input, queries, keys and values, core, output projection input, dropout mask.
  memory.stored = 2 * residual + queries + keys_and_values + queries + mask;
  // MLP: norm input, projection input, activation inputs, activation output, dropout mask.
  memory.stored += 2 * residual + shapes.mlp_inputs * inner + inner + mask;
  if (!selective) memory.stored += core;
  memory.checkpoint = residual;
  memory.recomputed_core = selective ? core : 0;
  const Bytes whole = shapes.residual_bytes();
  const Bytes gathered = shapes.sequence_parallel ? whole : 0;
  memory.forward_buffers = whole;
  memory.backward_buffers =
      whole + std::max(shapes.mlp_inputs * inner + inner, 2 * queries + keys_and_values);
  memory.forward_gathered = gathered;
  memory.backward_gathered = 2 * gathered;
  return memory;
}

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
