// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "sim/base/units.hpp"

namespace trainsim::model {

/// Non-linearity of the MLP. The gated kinds have two input projections (gate and up) instead of one.
enum class Activation { kGelu, kRelu, kSwiglu, kGeglu };
/// How attention is computed: fused (no s x s tensor in memory) by current kernels, by the second
/// generation of 2023 (FlashAttention-2, which PyTorch has), by the first of 2022 (FlashAttention 1, in CUDA
/// or Triton), or as separate kernels.
enum class Attention { kFlash, kFlash2, kFlash1, kStandard };
/// "flash", "flash-2", "flash-1" or "standard", as the configuration file spells it.
std::string to_string(Attention attention);
/// Where positions enter: a learned table (GPT), rotated queries and keys (Llama), or a bias (BLOOM).
enum class PositionEmbedding { kLearned, kRotary, kAlibi, kNone };
/// Kind of the normalisation layers; RMSNorm has no bias and needs half the parameters.
enum class Normalization { kLayerNorm, kRmsNorm };

/// Mixture of experts: in some layers a router sends each token to a few of many MLPs, instead of all tokens
/// to one (Shazeer et al. 2017, arXiv 1701.06538; Fedus et al. 2021, arXiv 2101.03961).
struct Experts {
  /// Routed experts of a layer; 0 = a dense model.
  std::int64_t count = 0;
  /// Experts that each token visits (top-k), 1 to `count`.
  std::int64_t per_token = 1;
  /// Width of an expert's inner layer.
  std::int64_t intermediate_size = 0;
  /// Width of the inner layer of all shared experts together, which every token visits; 0 = none.
  std::int64_t shared_intermediate_size = 0;
  /// First layers that have an ordinary MLP, and after them: every how many layers there are experts.
  std::int64_t dense_layers = 0;
  std::int64_t layer_interval = 1;
  /// Tokens that an expert takes at most, as a multiple of its even share; further ones are dropped. 0 = all.
  double capacity_factor = 0;
  /// Tokens of the rank whose experts get most, as a multiple of the even share; >= 1.
  double imbalance = 1.0;

  bool active() const { return count > 0; }
  /// Share of all copies of tokens that their experts take, 0 to 1; the rest is dropped.
  double sent_share() const { return capacity_factor > 0 ? std::min(1.0, capacity_factor) : 1.0; }
};

/// Which of its two kinds a layer is.
enum class LayerKind : std::uint8_t {
  /// With an MLP that all tokens pass through.
  kDense,
  /// With a router and experts.
  kExpert,
};

/// Multi-head latent attention (DeepSeek-AI 2024, arXiv 2405.04434): queries, and keys with values, are
/// projected to narrow latents and from there to their heads. A head's query and key have a part that is
/// rotated, which all heads share for keys, and one that is not.
struct LatentAttention {
  /// Width of the queries' latent; 0 = queries are projected at once.
  std::int64_t query_rank = 0;
  /// Width of the latent of keys and values; 0 = ordinary attention.
  std::int64_t key_value_rank = 0;
  /// Width of the rotated part of a query or key head.
  std::int64_t rope_head_dim = 0;

  bool active() const { return key_value_rank > 0; }
};

/// A decoder-only transformer, in Hugging Face's terms. All counts are >= 1 unless stated.
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
  /// Width of a value head where it is not that of queries and keys (latent attention); 0 = the same.
  std::int64_t value_head_dim = 0;
  LatentAttention latent;
  /// Width of the inner layer of an ordinary MLP.
  std::int64_t intermediate_size = 0;
  Experts experts;
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
  /// Width of one value head, and of what all query heads put out together.
  std::int64_t value_dim() const { return value_head_dim > 0 ? value_head_dim : head_dim; }
  std::int64_t output_width() const { return num_attention_heads * value_dim(); }
  /// Kind of a layer, counted from 0; dense ones come first, and then as Megatron-LM's --moe-layer-freq and
  /// DeepSeek's moe_layer_freq count.
  LayerKind kind_of(std::int64_t layer) const {
    const bool routed =
        experts.active() && layer >= experts.dense_layers && layer % experts.layer_interval == 0;
    return routed ? LayerKind::kExpert : LayerKind::kDense;
  }
  /// Layers of a kind.
  std::int64_t layers_of(LayerKind kind) const;
};

/// Parameters of one transformer layer (attention, MLP or router and all experts, and its two norms).
double layer_parameters(const ModelSpec& model, LayerKind kind = LayerKind::kDense);
/// Parameters of the input embedding for a vocabulary of `vocab` rows, positions and embedding norm included.
double embedding_parameters(const ModelSpec& model, std::int64_t vocab);
/// Parameters after the last layer: the final norm and, when not tied, the head of `vocab` rows.
double head_parameters(const ModelSpec& model, std::int64_t vocab);
/// Parameters of the whole model with its own, unpadded vocabulary.
double total_parameters(const ModelSpec& model);
/// Those that a token passes through: all but the routed experts that it does not visit.
double active_parameters(const ModelSpec& model);

/// Model FLOPs of one training step over `sequences` sequences: forward plus twice that for backward,
/// attention counted in full (not halved for the causal mask), recomputation not counted. Of routed experts
/// those count that tokens visit, but for copies that are dropped, and the router. For a GPT with
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
