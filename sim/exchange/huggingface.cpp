// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/huggingface.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/config/utf8.hpp"
#include "sim/exchange/huggingface_types.hpp"
#include "sim/exchange/json_reader.hpp"

namespace trainsim::exchange {

namespace {

/// Keys that say something of experts or latent attention whatever the type is called.
constexpr std::array<std::string_view, 6> kExpertKeys = {"num_local_experts",   "num_experts",
                                                         "n_routed_experts",    "moe_num_experts",
                                                         "num_experts_per_tok", "moe_intermediate_size"};

/// A key's name in transformers and what stands for it when the file leaves it out.
using Names = std::vector<std::string>;

/// Does the work of translate_huggingface().
class Model {
 public:
  explicit Model(JsonReader json) : json_(std::move(json)) {}

  Translation run() {
    const std::string name = type_name();
    type_ = find_model_type(name);
    if (type_ == nullptr) unknown_type(name);
    shape();
    if (!type_->experts.empty()) experts();
    kinds();
    differences();
    rest();
    return std::move(out_);
  }

 private:
  /// The model type; that of the text model in a multimodal one.
  std::string type_name() {
    std::string name = read_text({"model_type"}).value_or("");
    if (json_.has("text_config")) {
      out_.remark(Reason::kUnsupported, "vision_config", "only the text model (text_config) is simulated");
      json_ = JsonReader(*json_.find("text_config"));
      name = read_text({"model_type"}).value_or("llama");
    }
    if (name.empty())
      throw InputError("error: has no model_type; it is no config.json of a Hugging Face model");
    refuse(name);
    return name;
  }

  void refuse(const std::string& name) const {
    if (const std::string what = foreign_model_type(name); !what.empty())
      throw InputError("error: a model of type " + name + " " + what +
                       ", which this version cannot simulate; only decoders");
    const ModelType* type = find_model_type(name);
    const bool has_experts = type != nullptr && !type->experts.empty();
    if (json_.has("kv_lora_rank") && !has_experts)
      throw InputError(
          "error: kv_lora_rank: the model has multi-head latent attention (MLA), which is imported of the "
          "types "
          "deepseek_v2, deepseek_v3 and kimi_k2 alone; take the key out, and write model.latent_attention "
          "into "
          "what is imported");
    if (has_experts) return;
    for (const std::string_view key : kExpertKeys) {
      const auto experts = json_.has(std::string(key)) ? json_.count(std::string(key)) : std::nullopt;
      if (experts.value_or(0) > 1)
        throw InputError(
            "error: " + std::string(key) + " is " + std::to_string(*experts) +
            ": the model is a mixture of experts, and those of type " + config::clip(name) +
            " are not known to this version; write model_type: mixtral or qwen3_moe if it is like "
            "one of them");
    }
  }

  [[noreturn]] static void unknown_type(const std::string& name) {
    throw InputError("error: the model type " + config::clip(name) +
                     " is not known to this version; known are " + model_type_names() +
                     "; a model of the same shape can be written as one of them");
  }

  std::optional<std::int64_t> read_count(const Names& names, std::string* from = nullptr) {
    for (const std::string& name : names) {
      used_.insert(name.substr(0, name.find('.')));
      const std::optional<std::int64_t> count = json_.count(name);
      if (!count) continue;
      if (from != nullptr) *from = name;
      return count;
    }
    return std::nullopt;
  }

  std::optional<std::string> read_text(const Names& names) {
    for (const std::string& name : names) {
      used_.insert(name.substr(0, name.find('.')));
      if (auto text = json_.text(name)) return text;
    }
    return std::nullopt;
  }

  std::optional<bool> read_flag(const std::string& name) {
    used_.insert(name.substr(0, name.find('.')));
    return json_.flag(name);
  }

  std::optional<double> read_number(const Names& names) {
    for (const std::string& name : names) {
      used_.insert(name.substr(0, name.find('.')));
      if (const auto number = json_.number(name)) return number;
    }
    return std::nullopt;
  }

  /// Copies a count under the first of several names.
  std::int64_t copy(const Names& names, const std::string& path) {
    std::string from;
    const std::optional<std::int64_t> count = read_count(names, &from);
    if (count) out_.set(path, *count, from == path.substr(path.find('.') + 1) ? "" : from);
    return count.value_or(0);
  }

  std::string default_note() const { return "the default of " + std::string(type_->name); }

  void shape() {
    copy({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, "model.num_layers");
    hidden_ = copy({"hidden_size", "n_embd", "n_embed", "d_model"}, "model.hidden_size");
    heads_ = copy({"num_attention_heads", "n_head", "n_heads", "num_heads"}, "model.num_attention_heads");
    if (json_.has("kv_lora_rank")) {
      latent_attention();
    } else {
      heads();
    }
    mlp();
    copy({"vocab_size"}, "model.vocab_size");
    positions();
  }

  void heads() {
    key_values();
    std::string from;
    if (const auto width = read_count({"head_dim", "kv_channels"}, &from)) {
      out_.set("model.head_dim", *width);
    } else if (type_->head_dim > 0) {
      out_.set("model.head_dim", type_->head_dim, default_note());
    }
  }

  void latent_attention() {
    // All heads have keys and values of their own.
    read_count({"num_key_value_heads"});
    read_count({"head_dim"});
    std::string mapping;
    for (const char* key :
         {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
      const auto width = read_count({key});
      if (!width) continue;
      mapping += mapping.empty() ? "{" : ", ";
      mapping += key;
      mapping += ": ";
      mapping += std::to_string(*width);
    }
    out_.set("model.latent_attention", mapping + "}", "q_lora_rank, kv_lora_rank and widths of heads");
  }

  void key_values() {
    std::string from;
    std::optional<std::int64_t> groups =
        read_count({"num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads", "n_head_kv"}, &from);
    const bool several = read_flag("new_decoder_architecture").value_or(false);
    const bool multi_query =
        read_flag("multi_query").value_or(type_->name == "falcon" || type_->name == "gpt_bigcode");
    if (type_->name == "falcon" && !several)
      groups = multi_query ? std::optional<std::int64_t>(1) : std::nullopt;
    if (type_->name == "gpt_bigcode" && multi_query) groups = 1;
    if (groups) {
      const std::string origin = from.empty() || from == "num_key_value_heads" ? "" : from;
      out_.set("model.num_key_value_heads", *groups, groups == 1 && multi_query ? "multi_query" : origin);
    } else if (type_->key_value_heads > 0) {
      out_.set("model.num_key_value_heads", type_->key_value_heads, default_note());
    }
  }

  void mlp() {
    const std::string given =
        read_text({"hidden_act", "hidden_activation", "activation_function", "afn"}).value_or("");
    const bool gated = type_->activation == "swiglu" || type_->activation == "geglu";
    std::string ours(type_->activation);
    if (!given.empty()) {
      const bool gelu = given.find("gelu") != std::string::npos;
      const bool silu = given == "silu" || given == "swish";
      if (gated && (gelu || silu)) ours = gelu ? "geglu" : "swiglu";
      if (!gated && gelu) ours = "gelu";
      if (!gated && given == "relu") ours = "relu";
      if (!gelu && !silu && given != "relu")
        out_.remark(Reason::kUnsupported, "activation " + config::clip(given), "simulated as " + ours);
      if (!gated && silu) {
        ours = "gelu";
        out_.remark(Reason::kUnsupported, "activation " + given, "simulated as gelu, which takes as long");
      }
    }
    out_.set("model.activation", ours,
             given.empty() ? default_note() : "activation " + given + (gated ? ", gated" : ""));
    std::string from;
    std::optional<std::int64_t> width =
        read_count({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, &from);
    if (!width) {
      const auto ratio = read_number({"expansion_ratio"});
      if (ratio) {
        width = static_cast<std::int64_t>(*ratio * static_cast<double>(hidden_));
        from = "expansion_ratio";
      }
    }
    if (width) out_.set("model.intermediate_size", *width, from == "intermediate_size" ? "" : from);
  }

  void experts() {
    const std::string count_key(type_->experts);
    const std::string width_key(type_->expert_width);
    const auto count = read_count({count_key});
    const auto visited = read_count({"num_experts_per_tok"});
    const auto width = read_count({width_key});
    if (!count || !visited || !width)
      throw InputError("error: a model of type " + std::string(type_->name) + " needs " + count_key +
                       ", num_experts_per_tok and " + width_key);
    std::string mapping = "{count: " + std::to_string(*count) + ", per_token: " + std::to_string(*visited) +
                          ", intermediate_size: " + std::to_string(*width);
    std::int64_t shared = read_count({"shared_expert_intermediate_size"}).value_or(0);
    shared += read_count({"n_shared_experts"}).value_or(0) * *width;
    if (shared > 0) mapping += ", shared_intermediate_size: " + std::to_string(shared);
    if (const auto dense = read_count({"first_k_dense_replace"}); dense.value_or(0) > 0)
      mapping += ", dense_layers: " + std::to_string(*dense);
    if (const auto interval = read_count({"moe_layer_freq"}); interval.value_or(1) > 1)
      mapping += ", layer_interval: " + std::to_string(*interval);
    const std::int64_t step = read_count({"decoder_sparse_step"}).value_or(1);
    if (step > 1) {
      mapping += ", layer_interval: " + std::to_string(step);
      out_.remark(Reason::kUnsupported, "decoder_sparse_step " + std::to_string(step),
                  "layers with experts are counted from the first one on, not from the last of each step");
    }
    used_.insert("mlp_only_layers");
    const auto dense = json_.object().find("mlp_only_layers");
    if (dense != json_.object().end() && dense->is_array() && !dense->empty())
      out_.remark(Reason::kUnsupported, "mlp_only_layers", "simulated with experts like all others");
    out_.set("model.experts", mapping + "}", count_key + ", num_experts_per_tok, " + width_key);
  }

  void positions() {
    std::string from;
    const auto most =
        read_count({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"}, &from);
    std::string position(type_->position);
    if (read_flag("alibi").value_or(false)) position = "alibi";
    if (type_->name == "mpt" && !read_flag("attn_config.alibi").value_or(true)) position = "learned";
    if (read_flag("attn_config.rope").value_or(false)) position = "rotary";
    out_.set("model.position_embedding", position, "of " + std::string(type_->name));
    if (!most) return;
    out_.set("model.sequence_length", *most, from);
    out_.assume("sequences are as long as the model allows, " + std::to_string(*most) + " tokens (" + from +
                "); the length of training is no part of the model, and plan.sequence_length sets it");
  }

  void kinds() {
    out_.set("model.normalization", std::string(type_->normalization), "of " + std::string(type_->name));
    const std::optional<bool> tied = read_flag("tie_word_embeddings");
    out_.set("model.tie_word_embeddings", tied.value_or(type_->tied), tied ? "" : default_note());
    std::optional<bool> bias;
    for (const char* key : {"use_bias", "enable_bias", "bias", "mlp_bias"}) {
      if (const auto given = read_flag(key)) bias = given;
    }
    const std::optional<bool> attention_bias = read_flag("attention_bias");
    if (type_->name == "gpt_neox" && attention_bias) bias = attention_bias;
    if (const auto none = read_flag("no_bias")) bias = !*none;
    out_.set("model.linear_bias", bias.value_or(type_->bias), bias ? "" : default_note());
    if (attention_bias.value_or(false) && !bias.value_or(type_->bias))
      out_.remark(Reason::kUnsupported, "attention_bias",
                  "biases of attention alone, a thousandth of the parameters, are left out");
    if (type_->name == "bloom") out_.set("model.embedding_norm", true, "of bloom");
    dropout();
    const std::string kernel = read_text({"_attn_implementation", "attn_implementation"}).value_or("sdpa");
    out_.set("model.attention", std::string(kernel == "eager" ? "standard" : "flash"),
             kernel == "sdpa" ? "PyTorch's SDPA, the default of transformers"
                              : "attention implementation " + kernel);
  }

  void dropout() {
    const auto hidden =
        read_number({"resid_pdrop", "hidden_dropout", "dropout", "residual_dropout", "resid_dropout"});
    const auto attention = read_number({"attn_pdrop", "attention_dropout", "attn_config.attn_pdrop"});
    const double value = hidden.value_or(type_->dropout);
    out_.set("model.dropout", number_text(value), hidden ? "" : default_note());
    if (attention && *attention != value)
      out_.remark(Reason::kUnsupported, "attention dropout " + number_text(*attention),
                  "the model has one dropout, and that behind the layers is taken for both");
  }

  void differences() {
    if (!type_->left_out.empty())
      out_.remark(Reason::kUnsupported, "model type " + std::string(type_->name),
                  std::string(type_->left_out));
    const bool parallel = read_flag("use_parallel_residual").value_or(type_->name == "gpt_neox");
    const bool parallel_attention = read_flag("parallel_attn").value_or(type_->name == "falcon");
    if ((parallel && type_->name == "gpt_neox") || (parallel_attention && type_->name == "falcon"))
      out_.remark(Reason::kUnsupported, "parallel residual", std::string(kParallel));
    const bool uses_window = read_flag("use_sliding_window").value_or(!type_->name.starts_with("qwen"));
    const auto window = read_count({"sliding_window"});
    const Setting* length = out_.find("model.sequence_length");
    if (window && uses_window && length != nullptr && *window < std::stoll(length->value))
      out_.remark(Reason::kUnsupported, "sliding_window " + std::to_string(*window),
                  "attention is simulated over the whole sequence");
    const auto projection = read_count({"word_embed_proj_dim"});
    if (projection && *projection != hidden_)
      out_.remark(Reason::kUnsupported, "word_embed_proj_dim " + std::to_string(*projection),
                  "embeddings are simulated as wide as the model");
    for (const char* key : {"do_layer_norm_before"}) read_flag(key);
    if (read_count({"num_nextn_predict_layers"}).value_or(0) > 0)
      out_.remark(Reason::kUnsupported, "num_nextn_predict_layers", "multi-token prediction is left out");
  }

  /// Keys that nobody looked at.
  void rest() {
    for (const auto& [key, value] : json_.object().items()) {
      if (used_.count(key) > 0 || value.is_null()) continue;
      if (harmless_model_keys().count(key) > 0) {
        out_.remark(Reason::kNoEffect, key);
      } else {
        out_.remark(Reason::kUnknown, key + ": " + json_text(value));
      }
    }
  }

  JsonReader json_;
  const ModelType* type_ = nullptr;
  std::set<std::string> used_;
  std::int64_t hidden_ = 0;
  std::int64_t heads_ = 0;
  Translation out_;
};

}  // namespace

Translation translate_huggingface(const std::string& json) {
  return Model(parse_json(json)).run();
}

}  // namespace trainsim::exchange
