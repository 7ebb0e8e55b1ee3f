// SPDX-License-Identifier: Apache-2.0
#include "sim/model/model_spec.hpp"

namespace trainsim::model {

namespace {

double norm_parameters(const ModelSpec& model) {
  const double h = static_cast<double>(model.hidden_size);
  return model.normalization == Normalization::kLayerNorm ? 2.0 * h : h;
}

}  // namespace

std::string to_string(Attention attention) {
  switch (attention) {
    case Attention::kFlash:
      return "flash";
    case Attention::kFlash1:
      return "flash-1";
    case Attention::kStandard:
      return "standard";
  }
  return "";
}

double layer_parameters(const ModelSpec& model) {
  const double h = static_cast<double>(model.hidden_size);
  const double q = static_cast<double>(model.query_width());
  const double kv = static_cast<double>(model.key_value_width());
  const double ffn = static_cast<double>(model.intermediate_size);
  const double inputs = model.gated() ? 2.0 : 1.0;
  double weights = h * (q + 2.0 * kv) + q * h + (inputs + 1.0) * h * ffn;
  if (model.linear_bias) weights += (q + 2.0 * kv) + h + inputs * ffn + h;
  return weights + 2.0 * norm_parameters(model);
}

double embedding_parameters(const ModelSpec& model, std::int64_t vocab) {
  const double h = static_cast<double>(model.hidden_size);
  double parameters = static_cast<double>(vocab) * h;
  if (model.position_embedding == PositionEmbedding::kLearned) {
    parameters += static_cast<double>(model.max_position_embeddings) * h;
  }
  if (model.embedding_norm) parameters += norm_parameters(model);
  return parameters;
}

double head_parameters(const ModelSpec& model, std::int64_t vocab) {
  const double untied = static_cast<double>(vocab) * static_cast<double>(model.hidden_size);
  return norm_parameters(model) + (model.tie_word_embeddings ? 0.0 : untied);
}

double total_parameters(const ModelSpec& model) {
  return static_cast<double>(model.num_layers) * layer_parameters(model) +
         embedding_parameters(model, model.vocab_size) + head_parameters(model, model.vocab_size);
}

namespace {

/// Multiplies with weights in the forward of one sequence, head included.
Flops weight_flops(const ModelSpec& model) {
  const double s = static_cast<double>(model.sequence_length);
  const double h = static_cast<double>(model.hidden_size);
  const double q = static_cast<double>(model.query_width());
  const double kv = static_cast<double>(model.key_value_width());
  const double ffn = static_cast<double>(model.intermediate_size);
  const double inputs = model.gated() ? 2.0 : 1.0;
  const double projections = 2.0 * s * (h * (q + 2.0 * kv) + q * h + (inputs + 1.0) * h * ffn);
  return static_cast<double>(model.num_layers) * projections +
         2.0 * s * h * static_cast<double>(model.vocab_size);
}

}  // namespace

Flops model_flops(const ModelSpec& model, double sequences) {
  const double s = static_cast<double>(model.sequence_length);
  const double attention =
      static_cast<double>(model.num_layers) * 4.0 * s * s * static_cast<double>(model.query_width());
  return 3.0 * sequences * (weight_flops(model) + attention);
}

Flops weight_gradient_flops(const ModelSpec& model, double sequences) {
  return sequences * weight_flops(model);
}

std::int64_t padded_vocabulary(std::int64_t vocab, std::int64_t multiple, std::int64_t tensor_parallel) {
  const std::int64_t unit = multiple * tensor_parallel;
  return (vocab + unit - 1) / unit * unit;
}

}  // namespace trainsim::model
