// SPDX-License-Identifier: Apache-2.0
#include "sim/model/model_spec.hpp"

namespace trainsim::model {

namespace {

double norm_parameters(const ModelSpec& model) {
  const double h = static_cast<double>(model.hidden_size);
  return model.normalization == Normalization::kLayerNorm ? 2.0 * h : h;
}

/// Weights of attention's projections.
double attention_weights(const ModelSpec& model) {
  const double h = static_cast<double>(model.hidden_size);
  const double q = static_cast<double>(model.query_width());
  if (!model.latent.active()) {
    const double kv = static_cast<double>(model.key_value_width());
    return h * (q + 2.0 * kv) + q * h;
  }
  const LatentAttention& latent = model.latent;
  const auto queries = static_cast<double>(latent.query_rank);
  const auto keys = static_cast<double>(latent.key_value_rank);
  const auto rotated = static_cast<double>(latent.rope_head_dim);
  const auto heads = static_cast<double>(model.num_attention_heads);
  const double unrotated = static_cast<double>(model.head_dim) - rotated;
  const double into_queries = queries > 0 ? h * queries + queries * q : h * q;
  const double out = static_cast<double>(model.output_width());
  return into_queries + h * (keys + rotated) + keys * (heads * unrotated + out) + out * h;
}

/// Latents and what is made of them have no biases (Megatron-LM's MLASelfAttention).
double attention_biases(const ModelSpec& model) {
  const double projections = static_cast<double>(model.query_width() + 2 * model.key_value_width());
  return (model.latent.active() ? 0.0 : projections) + static_cast<double>(model.hidden_size);
}

/// Weights of the RMS norms of latents.
double latent_norms(const ModelSpec& model) {
  return static_cast<double>(model.latent.query_rank + model.latent.key_value_rank);
}

/// An MLP or expert whose inner layer has this width; nothing for 0.
double mlp_parameters(const ModelSpec& model, std::int64_t width) {
  if (width == 0) return 0;
  const double h = static_cast<double>(model.hidden_size);
  const double ffn = static_cast<double>(width);
  const double inputs = model.gated() ? 2.0 : 1.0;
  const double weights = (inputs + 1.0) * h * ffn;
  return model.linear_bias ? weights + inputs * ffn + h : weights;
}

}  // namespace

std::string to_string(Attention attention) {
  switch (attention) {
    case Attention::kFlash:
      return "flash";
    case Attention::kFlash2:
      return "flash-2";
    case Attention::kFlash1:
      return "flash-1";
    case Attention::kStandard:
      return "standard";
  }
  return "";
}

std::int64_t ModelSpec::layers_of(LayerKind kind) const {
  std::int64_t layers = 0;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) layers += kind_of(layer) == kind ? 1 : 0;
  return layers;
}

double layer_parameters(const ModelSpec& model, LayerKind kind) {
  const double h = static_cast<double>(model.hidden_size);
  double weights = attention_weights(model) + latent_norms(model);
  if (model.linear_bias) weights += attention_biases(model);
  if (kind == LayerKind::kDense) {
    weights += mlp_parameters(model, model.intermediate_size);
  } else {
    const double count = static_cast<double>(model.experts.count);
    weights += h * count + count * mlp_parameters(model, model.experts.intermediate_size);
    weights += mlp_parameters(model, model.experts.shared_intermediate_size);
  }
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
  const auto dense = static_cast<double>(model.layers_of(LayerKind::kDense));
  const auto routed = static_cast<double>(model.layers_of(LayerKind::kExpert));
  return dense * layer_parameters(model) + routed * layer_parameters(model, LayerKind::kExpert) +
         embedding_parameters(model, model.vocab_size) + head_parameters(model, model.vocab_size);
}

double active_parameters(const ModelSpec& model) {
  const double idle = static_cast<double>(model.experts.count - model.experts.per_token) *
                      mlp_parameters(model, model.experts.intermediate_size);
  return total_parameters(model) - static_cast<double>(model.layers_of(LayerKind::kExpert)) * idle;
}

namespace {

/// Multiplies with weights in the forward of one sequence, head included.
Flops weight_flops(const ModelSpec& model) {
  const double s = static_cast<double>(model.sequence_length);
  const double h = static_cast<double>(model.hidden_size);
  const double ffn = static_cast<double>(model.intermediate_size);
  const double inputs = model.gated() ? 2.0 : 1.0;
  const double attention = attention_weights(model);
  const double projections = 2.0 * s * (attention + (inputs + 1.0) * h * ffn);
  const auto dense = static_cast<double>(model.layers_of(LayerKind::kDense));
  double flops = dense * projections + 2.0 * s * h * static_cast<double>(model.vocab_size);
  const Experts& experts = model.experts;
  if (experts.active()) {
    const double visited =
        experts.sent_share() * static_cast<double>(experts.per_token * experts.intermediate_size) +
        static_cast<double>(experts.shared_intermediate_size);
    const double router = h * static_cast<double>(experts.count);
    const auto routed = static_cast<double>(model.layers_of(LayerKind::kExpert));
    flops += routed * 2.0 * s * (attention + router + (inputs + 1.0) * h * visited);
  }
  return flops;
}

}  // namespace

Flops model_flops(const ModelSpec& model, double sequences) {
  const double s = static_cast<double>(model.sequence_length);
  // Scores over the width of queries, and values over theirs.
  const double widths =
      (static_cast<double>(model.query_width()) + static_cast<double>(model.output_width())) / 2.0;
  const double attention = static_cast<double>(model.num_layers) * 4.0 * s * s * widths;
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
