// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/huggingface_types.hpp"

#include <algorithm>
#include <iterator>

namespace trainsim::exchange {

namespace {

/// A model type that is no dense decoder, and why.
struct Foreign {
  std::string_view name;
  std::string_view what;
};

constexpr std::string_view kQueryNorms = "norms of queries and keys are left out";
constexpr std::string_view kFourNorms = "norms behind attention and MLP are left out";

constexpr ModelType kTypes[] = {
    {"llama", "swiglu", "rmsnorm", "rotary"},
    {"mistral", "swiglu", "rmsnorm", "rotary", false, false, 8},
    {"ministral", "swiglu", "rmsnorm", "rotary", false, false, 8},
    {"qwen2", "swiglu", "rmsnorm", "rotary", false, false, 32, 0, 0,
     "biases of queries, keys and values alone, a thousandth of the parameters, are left out"},
    {"qwen3", "swiglu", "rmsnorm", "rotary", false, false, 32, 128, 0, kQueryNorms},
    {"gemma", "geglu", "rmsnorm", "rotary", true, false, 16, 256},
    {"gemma2", "geglu", "rmsnorm", "rotary", true, false, 4, 256, 0, kFourNorms},
    {"gemma3_text", "geglu", "rmsnorm", "rotary", true, false, 4, 256, 0, kFourNorms},
    {"phi3", "swiglu", "rmsnorm", "rotary"},
    {"phi", "gelu", "layernorm", "rotary", false, true, 0, 0, 0, kParallel},
    {"granite", "swiglu", "rmsnorm", "rotary"},
    {"internlm2", "swiglu", "rmsnorm", "rotary"},
    {"smollm3", "swiglu", "rmsnorm", "rotary", true, false, 4},
    {"olmo", "swiglu", "layernorm", "rotary"},
    {"olmo2", "swiglu", "rmsnorm", "rotary", false, false, 0, 0, 0, kQueryNorms},
    {"olmo3", "swiglu", "rmsnorm", "rotary", false, false, 0, 0, 0, kQueryNorms},
    {"stablelm", "swiglu", "layernorm", "rotary"},
    {"starcoder2", "gelu", "layernorm", "rotary", true, true, 2, 0, 0.0},
    {"cohere", "swiglu", "layernorm", "rotary", true, false, 0, 0, 0, kParallel},
    {"baichuan", "swiglu", "rmsnorm", "rotary"},
    {"gpt2", "gelu", "layernorm", "learned", true, true, 0, 0, 0.1},
    {"gpt_bigcode", "gelu", "layernorm", "learned", true, true, 0, 0, 0.1},
    {"gpt_neo", "gelu", "layernorm", "learned", true, true, 0, 0, 0.0,
     "local attention is simulated over the whole sequence"},
    {"gpt_neox", "gelu", "layernorm", "rotary", false, true, 0, 0, 0.0},
    {"gptj", "gelu", "layernorm", "rotary", false, true, 0, 0, 0.0, kParallel},
    {"bloom", "gelu", "layernorm", "alibi", true, true, 0, 0, 0.0},
    {"opt", "relu", "layernorm", "learned", true, true, 0, 0, 0.1},
    {"falcon", "gelu", "layernorm", "rotary", true, false},
    {"mpt", "gelu", "layernorm", "alibi", true, false},
};

constexpr std::string_view kExperts = "is a mixture of experts";
constexpr std::string_view kLatent = "is a mixture of experts with multi-head latent attention (MLA)";
constexpr std::string_view kEncoder = "has an encoder";
constexpr std::string_view kStates = "has state-space or recurrent layers";

constexpr Foreign kForeign[] = {
    {"mixtral", kExperts},     {"qwen2_moe", kExperts},
    {"qwen3_moe", kExperts},   {"dbrx", kExperts},
    {"gpt_oss", kExperts},     {"olmoe", kExperts},
    {"granitemoe", kExperts},  {"phimoe", kExperts},
    {"llama4", kExperts},      {"llama4_text", kExperts},
    {"grok-1", kExperts},      {"jetmoe", kExperts},
    {"glm4_moe", kExperts},    {"ernie4_5_moe", kExperts},
    {"nllb-moe", kExperts},    {"deepseek", kExperts},
    {"deepseek_v2", kLatent},  {"deepseek_v3", kLatent},
    {"kimi_k2", kLatent},      {"minicpm3", "has multi-head latent attention (MLA)"},
    {"t5", kEncoder},          {"mt5", kEncoder},
    {"bart", kEncoder},        {"whisper", kEncoder},
    {"bert", kEncoder},        {"roberta", kEncoder},
    {"deberta-v2", kEncoder},  {"vit", kEncoder},
    {"mamba", kStates},        {"mamba2", kStates},
    {"jamba", kStates},        {"rwkv", kStates},
    {"falcon_mamba", kStates}, {"recurrent_gemma", kStates},
    {"zamba2", kStates},       {"bamba", kStates},
    {"nemotron_h", kStates},   {"qwen3_next", kStates},
};

}  // namespace

const ModelType* find_model_type(const std::string& name) {
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const ModelType& known) { return known.name == name; });
  return type == std::end(kTypes) ? nullptr : type;
}

std::string model_type_names() {
  std::string names;
  for (const ModelType& type : kTypes) {
    names += names.empty() ? "" : ", ";
    names += type.name;
  }
  return names;
}

std::string foreign_model_type(const std::string& name) {
  const auto* found = std::find_if(std::begin(kForeign), std::end(kForeign),
                                   [&](const Foreign& foreign) { return foreign.name == name; });
  return found == std::end(kForeign) ? "" : std::string(found->what);
}

const std::set<std::string>& harmless_model_keys() {
  static const std::set<std::string> keys = {"architectures",
                                             "auto_map",
                                             "bos_token_id",
                                             "eos_token_id",
                                             "pad_token_id",
                                             "unk_token_id",
                                             "sep_token_id",
                                             "decoder_start_token_id",
                                             "initializer_range",
                                             "layer_norm_epsilon",
                                             "layer_norm_eps",
                                             "rms_norm_eps",
                                             "norm_eps",
                                             "norm_epsilon",
                                             "pretraining_tp",
                                             "rope_theta",
                                             "rope_scaling",
                                             "rope_parameters",
                                             "rotary_pct",
                                             "rotary_emb_base",
                                             "rotary_dim",
                                             "rotary",
                                             "partial_rotary_factor",
                                             "torch_dtype",
                                             "dtype",
                                             "transformers_version",
                                             "use_cache",
                                             "model_type",
                                             "max_window_layers",
                                             "summary_activation",
                                             "summary_first_dropout",
                                             "summary_proj_to_labels",
                                             "summary_type",
                                             "summary_use_proj",
                                             "task_specific_params",
                                             "attn_pdrop",
                                             "embd_pdrop",
                                             "n_ctx",
                                             "scale_attn_weights",
                                             "scale_attn_by_inverse_layer_idx",
                                             "reorder_and_upcast_attn",
                                             "_name_or_path",
                                             "name_or_path",
                                             "apply_residual_connection_post_layernorm",
                                             "attention_softmax_in_fp32",
                                             "masked_softmax_fusion",
                                             "slow_but_exact",
                                             "skip_bias_add",
                                             "skip_bias_add_qkv",
                                             "offset_alibi",
                                             "seq_length",
                                             "unk_token_id",
                                             "prefix",
                                             "init_std",
                                             "layerdrop",
                                             "_remove_final_layer_norm",
                                             "do_sample",
                                             "output_attentions",
                                             "output_hidden_states",
                                             "return_dict",
                                             "tokenizer_class",
                                             "gradient_checkpointing",
                                             "original_max_position_embeddings",
                                             "use_sliding_window",
                                             "query_pre_attn_scalar",
                                             "hidden_activation",
                                             "embedding_multiplier",
                                             "attention_multiplier",
                                             "residual_multiplier",
                                             "logits_scaling",
                                             "logit_scale",
                                             "rope_interleaved",
                                             "classifier_dropout",
                                             "n_ctx",
                                             "quantization_config",
                                             "tie_encoder_decoder",
                                             "is_decoder",
                                             "attention_types",
                                             "resid_pdrop",
                                             "logits_soft_cap",
                                             "embd_pdrop",
                                             "init_config",
                                             "emb_pdrop",
                                             "learned_pos_emb",
                                             "logit_scale",
                                             "no_bias",
                                             "verbose",
                                             "embedding_fraction",
                                             "norm_type",
                                             "init_device",
                                             "bias_dropout_fusion",
                                             "n_inner",
                                             "clip_qkv",
                                             "layer_norm_elementwise_affine",
                                             "_attn_implementation_autoset",
                                             "_attn_implementation",
                                             "attn_implementation",
                                             "training_seq_len"};
  return keys;
}

}  // namespace trainsim::exchange
