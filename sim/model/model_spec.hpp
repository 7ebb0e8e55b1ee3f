// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "sim/base/units.hpp"

namespace trainsim::model {

/// Non-linearity of the MLP. The gated kinds have two input projections (gate and up) instead of one.
enum class Activation { kGelu, kRelu, kSwiglu, kGeglu };
/// How attention is computed: fused (no s x s tensor in memory) by current kernels, by the first generation
/// of 2022 (FlashAttention 1, in CUDA or Triton), or as separate kernels.
enum class Attention { kFlash, kFlash1, kStandard };
/// "flash", "flash-1" or "standard", as the configuration file spells it.
std::string to_string(Attention attention);
/// Where positions enter: a learned table (GPT), rotated queries and keys (Llama), or a bias (BLOOM).
enum class PositionEmbedding { kLearned, kRotary, kAlibi, kNone };
/// Kind of the normalisation layers; RMSNorm has no bias and needs half the parameters.
enum class Normalization { kLayerNorm, kRmsNorm };

/// A dense decoder-only transformer, in Hugging Face's terms. All counts are >= 1 unless stated.
struct ModelSpec {
  /// Name for people: the preset's name, or "inline".
  std::string name;
  /// Transformer layers (blocks).
  std::int64_t num_layers = 0;
  /// Width of the residual stream, h.
  std::int64_t hidden_size = 0;
  /// Query heads, a.
  std::int64_t num_attention_heads = 0;
  /// Key/value heads (GQA); equal to the query heads for multi-head attention.
  std::int64_t num_key_value_heads = 0;
  /// Width of one head, d; h / a unless given.
  std::int64_t head_dim = 0;
  /// Width of the MLP's inner layer.
  std::int64_t intermediate_size = 0;
  /// Vocabulary before padding.
  std::int64_t vocab_size = 0;
  /// Tokens per sequence, s.
  std::int64_t sequence_length = 0;
  /// Rows of a learned position table; the sequence length unless given.
  std::int64_t max_position_embeddings = 0;
  Activation activation = Activation::kGelu;
  Attention attention = Attention::kStandard;
  PositionEmbedding position_embedding = PositionEmbedding::kLearned;
  Normalization normalization = Normalization::kLayerNorm;
  /// Whether the output head shares the input embedding's weight.
  bool tie_word_embeddings = true;
  /// Whether the linear layers carry biases.
  bool linear_bias = true;
  /// Whether the word embedding is normalised (BLOOM).
  bool embedding_norm = false;
  /// Dropout probability in [0, 1); with 0 no masks are stored and no dropout is computed.
  double dropout = 0.0;
  /// Parameters as published, for the preset test; 0 when unknown.
  double published_parameters = 0.0;

  /// Whether the MLP is gated (three matrices instead of two).
  bool gated() const { return activation == Activation::kSwiglu || activation == Activation::kGeglu; }
  /// Width of all key (or value) heads together.
  std::int64_t key_value_width() const { return num_key_value_heads * head_dim; }
  /// Width of all query heads together.
  std::int64_t query_width() const { return num_attention_heads * head_dim; }
};

/// Parameters of one transformer layer (attention, MLP and its two norms).
double layer_parameters(const ModelSpec& model);
/// Parameters of the input embedding for a vocabulary of `vocab` rows, positions and embedding norm included.
double embedding_parameters(const ModelSpec& model, std::int64_t vocab);
/// Parameters after the last layer: the final norm and, when not tied, the head of `vocab` rows.
double head_parameters(const ModelSpec& model, std::int64_t vocab);
/// Parameters of the whole model with its own, unpadded vocabulary.
double total_parameters(const ModelSpec& model);

/// Model FLOPs of one training step over `sequences` sequences: forward plus twice that for backward,
/// attention counted in full (not halved for the causal mask), recomputation not counted. For a GPT with
/// intermediate_size = 4h this is 72 B L s h^2 (1 + s/6h + V/12hL) of Korthikanti et al. 2022 (arXiv
/// 2205.05198).
Flops model_flops(const ModelSpec& model, double sequences);

/// What of that weight gradients take: a third of all multiplies with weights. Not computed where weights are
/// frozen.
Flops weight_gradient_flops(const ModelSpec& model, double sequences);

/// The vocabulary rounded up to a multiple of `multiple` * tensor_parallel, as Megatron-LM's
/// --make-vocab-size-divisible-by does, so that every tensor-parallel rank holds the same number of rows.
std::int64_t padded_vocabulary(std::int64_t vocab, std::int64_t multiple, std::int64_t tensor_parallel);

}  // namespace trainsim::model
