// SPDX-License-Identifier: Apache-2.0
#include "sim/config/spec_readers.hpp"

namespace trainsim::config {

namespace {

using model::Activation;
using model::Attention;
using model::ModelSpec;
using model::Normalization;
using model::PositionEmbedding;

const Words<Activation> kActivations = {{"gelu", Activation::kGelu},
                                        {"relu", Activation::kRelu},
                                        {"swiglu", Activation::kSwiglu},
                                        {"geglu", Activation::kGeglu}};
const Words<PositionEmbedding> kPositions = {{"learned", PositionEmbedding::kLearned},
                                             {"rotary", PositionEmbedding::kRotary},
                                             {"alibi", PositionEmbedding::kAlibi},
                                             {"none", PositionEmbedding::kNone}};
const Words<Normalization> kNormalizations = {{"layernorm", Normalization::kLayerNorm},
                                              {"rmsnorm", Normalization::kRmsNorm}};

constexpr CountRange kLayers = {1, 100'000};
constexpr CountRange kWidth = {1, 10'000'000};
constexpr CountRange kHeads = {1, 100'000};
constexpr CountRange kVocabulary = {1, 1'000'000'000};
constexpr CountRange kParameters = {1, 1'000'000'000'000'000'000};
/// The upper bound is below 1, since all would be dropped there.
constexpr NumberRange kDropout = {0.0, 0.999, true};
constexpr CountRange kExperts = {1, 100'000};
constexpr NumberRange kCapacity = {0.0, 1000.0, false};
constexpr NumberRange kImbalance = {1.0, 1000.0, true};

/// The width of a head: given, or the hidden size's share when that is whole.
std::int64_t read_head_dim(Section& section, const ModelSpec& model) {
  if (section.raw("latent_attention") != nullptr) {
    // Which gives the width of heads itself.
    for (const char* key : {"head_dim", "num_key_value_heads"}) {
      if (section.raw(key) != nullptr)
        section.fail(key,
                     "latent_attention has heads of its own, as many as there are queries; remove this key");
    }
    return 0;
  }
  const std::optional<std::int64_t> given = section.optional("head_dim", as_count(kWidth));
  if (section.raw("head_dim") != nullptr) return given.value_or(0);
  if (model.num_attention_heads == 0 || model.hidden_size == 0) return 0;
  if (model.hidden_size % model.num_attention_heads != 0) {
    section.fail("hidden_size",
                 std::to_string(model.hidden_size) + " is not a multiple of num_attention_heads " +
                     std::to_string(model.num_attention_heads) + "; give head_dim, or change one of the two");
    return 0;
  }
  const std::int64_t share = model.hidden_size / model.num_attention_heads;
  section.note_default("head_dim", std::to_string(share));
  return share;
}

/// Whether a count that decides which layers are dense is left out, or is the one that makes none of them so.
/// A wrong one is reported where it stands.
bool leaves_none_dense(const Value& experts, const char* key, std::int64_t none) {
  const Entry* entry = experts.find(key);
  return entry == nullptr || as_count({0, kLayers.most}).parse(entry->value).value.value_or(none) == none;
}

/// The width of the MLP, which a gated one has no customary value for; without any dense layer it only is
/// that of the experts, who then may say so themselves.
std::int64_t read_intermediate_size(Section& section, const ModelSpec& model) {
  const Value* experts = section.raw("experts");
  const Entry* of_experts = experts == nullptr ? nullptr : experts->find("intermediate_size");
  if (of_experts != nullptr && section.raw("intermediate_size") == nullptr &&
      leaves_none_dense(*experts, "dense_layers", 0) && leaves_none_dense(*experts, "layer_interval", 1)) {
    // A wrong one is reported where it stands.
    const std::int64_t width = as_count(kWidth).parse(of_experts->value).value.value_or(1);
    return section.defaulted("intermediate_size", as_count(kWidth), std::to_string(width));
  }
  if (model.gated()) return section.required("intermediate_size", as_count(kWidth));
  // After a wrong hidden size any value will do.
  const std::int64_t customary = std::max<std::int64_t>(1, std::min(4 * model.hidden_size, kWidth.most));
  return section.defaulted("intermediate_size", as_count(kWidth), std::to_string(customary));
}

/// Grouped-query attention: every key/value head serves the same number of query heads.
void check_groups(Section& section, const ModelSpec& model) {
  const std::int64_t heads = model.num_attention_heads;
  const std::int64_t groups = model.num_key_value_heads;
  if (heads == 0 || groups == 0 || heads % groups == 0) return;
  section.fail("num_key_value_heads", std::to_string(groups) + " does not divide the " +
                                          std::to_string(heads) +
                                          " attention heads; legal here: " + join_numbers(divisors(heads)));
}

void read_heads(Section& section, ModelSpec& model) {
  model.num_attention_heads = section.required("num_attention_heads", as_count(kHeads));
  const std::int64_t all = std::max<std::int64_t>(1, model.num_attention_heads);
  model.num_key_value_heads = section.defaulted("num_key_value_heads", as_count(kHeads), std::to_string(all));
  model.head_dim = read_head_dim(section, model);
  check_groups(section, model);
}

/// Layers with experts need numbers that fit each other and the model.
void check_experts(Section& section, const ModelSpec& model) {
  const model::Experts& experts = model.experts;
  if (experts.per_token > experts.count && experts.count > 0) {
    section.fail("per_token", std::to_string(experts.per_token) + " is more than the " +
                                  std::to_string(experts.count) + " experts; a token can't visit one twice");
  }
  if (model.num_layers > 0 && experts.dense_layers >= model.num_layers) {
    section.fail("dense_layers", std::to_string(experts.dense_layers) + " of " +
                                     std::to_string(model.num_layers) +
                                     " layers leave none with experts; legal here: 0 to " +
                                     std::to_string(model.num_layers - 1) + ", or leave model.experts out");
  } else if (experts.count > 0 && model.num_layers > 0 && experts.layer_interval > 0 &&
             model.layers_of(model::LayerKind::kExpert) == 0) {
    section.fail("layer_interval", "of layers " + std::to_string(experts.dense_layers) + " to " +
                                       std::to_string(model.num_layers - 1) + " none is a multiple of " +
                                       std::to_string(experts.layer_interval) +
                                       ", so that no layer has experts; use a smaller interval");
  }
}

void read_experts(Section& section, ModelSpec& model) {
  std::optional<Section> mapping = section.mapping("experts", false);
  if (!mapping) return;
  model::Experts& experts = model.experts;
  experts.count = mapping->required("count", as_count(kExperts));
  experts.per_token = mapping->required("per_token", as_count(kExperts));
  const std::int64_t width = std::max<std::int64_t>(1, model.intermediate_size);
  experts.intermediate_size =
      mapping->defaulted("intermediate_size", as_count(kWidth), std::to_string(width));
  experts.shared_intermediate_size =
      mapping->defaulted("shared_intermediate_size", as_count({0, kWidth.most}), "0");
  experts.dense_layers = mapping->defaulted("dense_layers", as_count({0, kLayers.most}), "0");
  experts.layer_interval = mapping->defaulted("layer_interval", as_count(kLayers), "1");
  experts.capacity_factor = mapping->optional("capacity_factor", as_number(kCapacity)).value_or(0);
  experts.imbalance = mapping->defaulted("imbalance", as_number(kImbalance), "1");
  check_experts(*mapping, model);
  mapping->finish();
}

/// By the names of DeepSeek's configuration.
void read_latent_attention(Section& section, ModelSpec& model) {
  std::optional<Section> mapping = section.mapping("latent_attention", false);
  if (!mapping) return;
  model.latent.query_rank = mapping->defaulted("q_lora_rank", as_count({0, kWidth.most}), "0");
  model.latent.key_value_rank = mapping->required("kv_lora_rank", as_count(kWidth));
  model.latent.rope_head_dim = mapping->required("qk_rope_head_dim", as_count(kWidth));
  model.head_dim = mapping->required("qk_nope_head_dim", as_count(kWidth)) + model.latent.rope_head_dim;
  model.value_head_dim = mapping->required("v_head_dim", as_count(kWidth));
  mapping->finish();
}

void read_kinds(Section& section, ModelSpec& model) {
  model.attention = section.defaulted("attention", as_choice(attention_words()), "flash");
  model.position_embedding = section.defaulted("position_embedding", as_choice(kPositions), "learned");
  model.normalization = section.defaulted("normalization", as_choice(kNormalizations), "layernorm");
  model.tie_word_embeddings = section.defaulted("tie_word_embeddings", as_flag(), "true");
  model.linear_bias = section.defaulted("linear_bias", as_flag(), "true");
  model.embedding_norm = section.defaulted("embedding_norm", as_flag(), "false");
  model.dropout = section.defaulted("dropout", as_number(kDropout), "0");
}

}  // namespace

const Words<Attention>& attention_words() {
  static const Words<Attention> all_words = {{"flash", Attention::kFlash},
                                             {"flash-2", Attention::kFlash2},
                                             {"flash-1", Attention::kFlash1},
                                             {"standard", Attention::kStandard}};
  return all_words;
}

ModelSpec read_model(Section& section) {
  ModelSpec model;
  model.name = section.optional("name", as_text()).value_or("inline");
  read_source_note(section);
  model.published_parameters =
      static_cast<double>(section.optional("published_parameters", as_count(kParameters)).value_or(0));
  model.num_layers = section.required("num_layers", as_count(kLayers));
  model.hidden_size = section.required("hidden_size", as_count(kWidth));
  read_heads(section, model);
  read_latent_attention(section, model);
  model.activation = section.defaulted("activation", as_choice(kActivations), "gelu");
  model.intermediate_size = read_intermediate_size(section, model);
  model.vocab_size = section.required("vocab_size", as_count(kVocabulary));
  model.sequence_length = section.required("sequence_length", as_count(kSequenceRange));
  const std::int64_t positions = std::max<std::int64_t>(1, model.sequence_length);
  model.max_position_embeddings =
      section.defaulted("max_position_embeddings", as_count(kSequenceRange), std::to_string(positions));
  read_kinds(section, model);
  read_experts(section, model);
  section.finish();
  return model;
}

}  // namespace trainsim::config
