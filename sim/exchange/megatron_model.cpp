// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/megatron_model.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::exchange {

namespace {

/// Vocabularies of tokenizers that always have the same.
const std::map<std::string, std::int64_t>& tokenizer_vocabularies() {
  static const std::map<std::string, std::int64_t> sizes = {
      {"GPT2BPETokenizer", 50257}, {"Llama2Tokenizer", 32000}, {"Llama3Tokenizer", 128256}};
  return sizes;
}

constexpr const char* kUnpadded =
    "experts work on the tokens that they get, without padding up to their capacity";

/// Does the work of translate_megatron_model().
class Model {
 public:
  Model(Arguments& arguments, Translation& out) : arguments_(arguments), out_(out) {}

  void run() {
    shape();
    if (has_experts(arguments_)) experts();
    if (arguments_.has("--multi-latent-attention")) latent_attention();
    kinds();
  }

 private:
  std::optional<std::int64_t> copy(std::string_view option, const std::string& path) {
    return copy_count(arguments_, out_, option, path);
  }

  void shape() {
    const bool named = arguments_.has("--num-layers");
    copy(named ? "--num-layers" : "--encoder-num-layers", "model.num_layers");
    const std::int64_t hidden = copy("--hidden-size", "model.hidden_size").value_or(0);
    const std::int64_t heads = copy("--num-attention-heads", "model.num_attention_heads").value_or(0);
    if (arguments_.has("--group-query-attention")) {
      const std::optional<std::int64_t> groups = arguments_.count("--num-query-groups");
      out_.set("model.num_key_value_heads", groups.value_or(1),
               groups ? "--num-query-groups" : "--group-query-attention, whose groups are 1 by default");
    } else if (const auto groups = arguments_.count("--num-query-groups")) {
      if (*groups != heads)
        out_.remark(Reason::kNoEffect, "--num-query-groups without --group-query-attention");
    } else if (const auto key_values = arguments_.count("--num-key-value-heads")) {
      out_.set("model.num_key_value_heads", *key_values, "--num-key-value-heads");
    }
    if (!arguments_.has("--multi-latent-attention")) copy("--kv-channels", "model.head_dim");
    const bool gated = activation();
    const bool width_given = copy("--ffn-hidden-size", "model.intermediate_size").has_value();
    width_ = swiglu_ ? 8 * hidden / 3 / 64 * 64 : 4 * hidden;
    if (width_given) {
      width_ = arguments_.count("--ffn-hidden-size").value_or(width_);
    } else if (gated && hidden > 0) {
      out_.set("model.intermediate_size", width_, "Megatron-LM's default for this activation");
    }
    vocabulary();
    copy(arguments_.has("--seq-length") ? "--seq-length" : "--encoder-seq-length", "model.sequence_length");
  }

  /// How many experts each layer has. Megatron-DeepSpeed takes a list with a number for each layer.
  std::int64_t expert_count() {
    const std::vector<std::int64_t> counts = arguments_.counts("--num-experts");
    const auto other = std::find_if(counts.begin(), counts.end(),
                                    [&](std::int64_t count) { return count != counts.front(); });
    if (other != counts.end())
      throw InputError("error: --num-experts is " + std::to_string(counts.front()) + " for some layers and " +
                       std::to_string(*other) +
                       " for others (PR-MoE), which this version cannot simulate; write one number, which "
                       "all layers with experts have");
    return counts.front();
  }

  /// Defaults are those of megatron/training/arguments.py: two experts for a token, as wide as an MLP; and
  /// those of Megatron-DeepSpeed: one.
  void experts() {
    const bool deepspeed = is_megatron_deepspeed(arguments_);
    const char* const visited = arguments_.has("--topk") ? "--topk" : "--moe-router-topk";
    std::string origin = "--num-experts";
    std::string mapping = "{count: " + std::to_string(expert_count());
    mapping += ", per_token: " + std::to_string(arguments_.count(visited).value_or(deepspeed ? 1 : 2));
    const auto add = [&](std::string_view option, const std::string& key) {
      const std::optional<std::int64_t> count = arguments_.count(option);
      if (!count) return;
      mapping += ", " + key + ": " + std::to_string(*count);
      origin += ", " + std::string(option);
    };
    add("--moe-ffn-hidden-size", "intermediate_size");
    add("--moe-shared-expert-intermediate-size", "shared_intermediate_size");
    expert_layers(mapping);
    if (deepspeed) deepspeed_experts(mapping, origin);
    capacity(mapping, deepspeed);
    out_.set("model.experts", mapping + "}", origin);
    if (arguments_.has("--moe-pad-expert-input-to-capacity"))
      out_.remark(Reason::kUnsupported, "--moe-pad-expert-input-to-capacity", kUnpadded);
    if (arguments_.has("--moe-shared-expert-overlap"))
      out_.remark(Reason::kUnsupported, "--moe-shared-expert-overlap",
                  "shared experts run before the exchange");
    const std::string dispatcher = arguments_.value("--moe-token-dispatcher-type").value_or("alltoall");
    if (dispatcher != "alltoall")
      out_.remark(Reason::kUnsupported, "--moe-token-dispatcher-type " + dispatcher, "simulated as alltoall");
  }

  /// Megatron-DeepSpeed's experts have a capacity of 1 by default. Megatron-LM's option counts there, too: it
  /// says more than a default.
  void capacity(std::string& mapping, bool deepspeed) {
    const double given = arguments_.number("--moe-expert-capacity-factor").value_or(0);
    if (given > 0) {
      mapping += ", capacity_factor: " + number_text(given);
    } else if (deepspeed && !arguments_.has("--disable-moe-token-dropping")) {
      mapping +=
          ", capacity_factor: " + number_text(arguments_.number("--moe-train-capacity-factor").value_or(1));
      out_.remark(Reason::kUnsupported, "--moe-train-capacity-factor, 1 without it", kUnpadded);
    }
  }

  /// What Megatron-DeepSpeed has other options for: experts in every second layer by default, and an MLP
  /// beside them.
  void deepspeed_experts(std::string& mapping, std::string& origin) {
    constexpr std::int64_t usual_interval = 2;
    const std::int64_t interval = arguments_.count("--expert-interval").value_or(usual_interval);
    if (interval > 1) {
      mapping += ", layer_interval: " + std::to_string(interval);
      const bool given = arguments_.has("--expert-interval");
      origin += given ? ", --expert-interval" : ", in every second layer as Megatron-DeepSpeed has them";
      out_.remark(
          Reason::kUnsupported,
          "--expert-interval " + std::to_string(interval) + (given ? "" : ", as without the option"),
          "layers with experts are counted from the first one on, not from the last of each interval");
    }
    const std::string type = arguments_.value("--mlp-type").value_or("standard");
    if (type == "standard") return;
    if (type != "residual")
      throw InputError("error: --mlp-type has the unknown value '" + config::clip(type) + "'");
    mapping += ", shared_intermediate_size: " + std::to_string(width_);
    out_.remark(Reason::kUnsupported, "--mlp-type residual",
                "the MLP beside the experts is simulated as a shared expert of its width, without the "
                "coefficients that weigh the two");
  }

  /// Where an option is missing: Megatron-LM's MLATransformerConfig.
  void latent_attention() {
    std::string mapping;
    const auto add = [&](std::string_view option, const std::string& key, std::optional<std::int64_t> usual) {
      const std::optional<std::int64_t> width = arguments_.count(option);
      if (!width && !usual) return;
      mapping +=
          (mapping.empty() ? "{" : ", ") + key + ": " + std::to_string(width.value_or(usual.value_or(0)));
    };
    add("--q-lora-rank", "q_lora_rank", std::nullopt);
    add("--kv-lora-rank", "kv_lora_rank", 32);
    add("--qk-head-dim", "qk_nope_head_dim", 128);
    add("--qk-pos-emb-head-dim", "qk_rope_head_dim", 64);
    add("--v-head-dim", "v_head_dim", 128);
    out_.set("model.latent_attention", mapping + "}", "--multi-latent-attention and its widths");
  }

  /// A number N for a layer with experts in every N, or a list such as ([0]*3+[1]*58).
  void expert_layers(std::string& mapping) {
    const std::optional<std::string> given = arguments_.value("--moe-layer-freq");
    if (!given || *given == "1") return;
    if (given->find_first_not_of("0123456789") == std::string::npos) {
      mapping += ", layer_interval: " + *given;
      return;
    }
    static const std::regex first_dense(R"(\(?\[0\]\s*\*\s*(\d+)\s*\+\s*\[1\]\s*\*\s*\d+\)?)");
    std::smatch match;
    if (std::regex_match(*given, match, first_dense)) {
      mapping += ", dense_layers: " + match[1].str();
    } else {
      out_.remark(Reason::kUnsupported, "--moe-layer-freq " + *given,
                  "simulated with experts in every layer");
    }
  }

  /// Sets the activation; returns whether it is gated.
  bool activation() {
    swiglu_ = arguments_.has("--swiglu");
    const std::optional<std::string> glu = arguments_.value("--glu-activation");
    if (swiglu_ || glu == "swiglu") {
      swiglu_ = true;
      out_.set("model.activation", std::string("swiglu"), glu ? "--glu-activation" : "--swiglu");
      return true;
    }
    if (arguments_.has("--quick-geglu") || glu) {
      out_.set("model.activation", std::string("geglu"), glu ? "--glu-activation" : "--quick-geglu");
      return true;
    }
    if (arguments_.has("--squared-relu")) {
      out_.set("model.activation", std::string("relu"), "--squared-relu");
      out_.remark(Reason::kUnsupported, "--squared-relu",
                  "simulated as ReLU without the square, which is fused");
      return false;
    }
    arguments_.has("--openai-gelu");
    out_.set("model.activation", std::string("gelu"), "the default");
    return false;
  }

  void vocabulary() {
    const std::optional<std::string> tokenizer = arguments_.value("--tokenizer-type");
    if (const auto padded = arguments_.count("--pad-vocab-size-to")) {
      out_.set("model.vocab_size", *padded, "--pad-vocab-size-to");
      return out_.set("plan.vocab_padding", std::int64_t{1}, "--pad-vocab-size-to");
    }
    if (const auto size = arguments_.count("--vocab-size")) {
      // The null tokenizer adds the token that ends documents.
      const std::int64_t extra = tokenizer == "NullTokenizer" ? 1 : 0;
      out_.set("model.vocab_size", *size + extra,
               std::string("--vocab-size") + (extra > 0 ? ", and one for the end of a document" : ""));
    } else {
      const std::string known = tokenizer.value_or("GPT2BPETokenizer");
      const auto found = tokenizer_vocabularies().find(known);
      const bool usable = tokenizer || arguments_.has("--vocab-file");
      if (found != tokenizer_vocabularies().end() && usable) {
        out_.set("model.vocab_size", found->second, "of " + known);
        if (!tokenizer)
          out_.assume("the tokenizer is GPT-2's, with 50257 tokens, because there is a --vocab-file");
      }
    }
    const std::int64_t padding = copy("--make-vocab-size-divisible-by", "plan.vocab_padding").value_or(0);
    if (padding == 0) out_.set("plan.vocab_padding", std::int64_t{128}, "the default");
  }

  void position() {
    const std::string kind = arguments_.value("--position-embedding-type").value_or("learned_absolute");
    const bool rotary = arguments_.has("--use-rotary-position-embeddings") || kind == "rope" ||
                        kind == "rotary" || kind == "yarn" || kind == "mrope";
    const bool none = arguments_.has("--no-position-embedding") || kind == "none";
    std::string ours = "learned";
    if (rotary) ours = "rotary";
    if (kind == "alibi") ours = "alibi";
    if (none && !rotary) ours = "none";
    if (kind == "relative") {
      ours = "none";
      out_.remark(Reason::kUnsupported, "--position-embedding-type relative", "simulated without positions");
    }
    const std::string option = arguments_.has("--position-embedding-type") ? "--position-embedding-type"
                               : rotary ? "--use-rotary-position-embeddings"
                               : none   ? "--no-position-embedding"
                                        : "the default";
    out_.set("model.position_embedding", ours, option);
    const std::optional<std::int64_t> positions = arguments_.count("--max-position-embeddings");
    const std::optional<std::int64_t> length = arguments_.count("--seq-length");
    if (positions && (ours == "learned" || *positions > length.value_or(*positions)))
      out_.set("model.max_position_embeddings", *positions, "--max-position-embeddings");
  }

  void kinds() {
    position();
    const bool rms = arguments_.value("--normalization").value_or("LayerNorm") == "RMSNorm";
    out_.set("model.normalization", std::string(rms ? "rmsnorm" : "layernorm"),
             arguments_.has("--normalization") ? "--normalization" : "the default");
    const bool untied = arguments_.has("--untie-embeddings-and-output-weights");
    out_.set("model.tie_word_embeddings", !untied,
             untied ? "--untie-embeddings-and-output-weights" : "the default");
    const bool no_bias = arguments_.has("--disable-bias-linear");
    out_.set("model.linear_bias", !no_bias, no_bias ? "--disable-bias-linear" : "the default");
    if (arguments_.has("--embed-layernorm")) out_.set("model.embedding_norm", true, "--embed-layernorm");
    constexpr double usual = 0.1;
    const double hidden = arguments_.number("--hidden-dropout").value_or(usual);
    const double attention = arguments_.number("--attention-dropout").value_or(usual);
    out_.set("model.dropout", number_text(hidden),
             arguments_.has("--hidden-dropout") ? "--hidden-dropout" : "the default");
    if (hidden != attention)
      out_.remark(Reason::kUnsupported, "--attention-dropout " + number_text(attention),
                  "the model has one dropout, and that of --hidden-dropout is taken for both");
  }

  Arguments& arguments_;
  Translation& out_;
  bool swiglu_ = false;
  /// Of an MLP.
  std::int64_t width_ = 0;
};

}  // namespace

std::optional<std::int64_t> copy_count(Arguments& arguments, Translation& out, std::string_view option,
                                       const std::string& path) {
  const std::optional<std::int64_t> count = arguments.count(option);
  if (count) out.set(path, *count, std::string(option));
  return count;
}

bool has_experts(Arguments& arguments) {
  const std::vector<std::int64_t> counts = arguments.counts("--num-experts");
  return std::any_of(counts.begin(), counts.end(), [](std::int64_t count) { return count > 1; });
}

bool is_megatron_deepspeed(const Arguments& arguments) {
  constexpr std::array<std::string_view, 9> signs = {"--deepspeed",
                                                     "--moe-expert-parallel-size",
                                                     "--moe-train-capacity-factor",
                                                     "--moe-eval-capacity-factor",
                                                     "--mlp-type",
                                                     "--topk",
                                                     "--expert-interval",
                                                     "--disable-moe-token-dropping",
                                                     "--enable-expert-tensor-parallelism"};
  return std::any_of(signs.begin(), signs.end(),
                     [&arguments](std::string_view sign) { return arguments.contains(sign); });
}

void translate_megatron_model(Arguments& arguments, Translation& out) {
  Model(arguments, out).run();
}

}  // namespace trainsim::exchange
