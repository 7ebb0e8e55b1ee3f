// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/huggingface_types.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace trainsim::exchange {

namespace {

/// A model type that can't be simulated, and why.
struct Foreign {
  std::string_view name;
  std::string_view what;
};

constexpr std::string_view kQueryNorms = "norms of queries and keys are left out";
constexpr std::string_view kQueryBiases =
    "biases of queries, keys and values alone, a thousandth of the parameters, are left out";
constexpr std::string_view kFourNorms = "norms behind attention and MLP are left out";

/// A type with the experts and latent attention of DeepSeek-V2.
constexpr ModelType deepseek(std::string_view name) {
  ModelType type = {name, "swiglu", "rmsnorm", "rotary"};
  type.experts = "n_routed_experts";
  type.expert_width = "moe_intermediate_size";
  return type;
}

constexpr ModelType kTypes[] = {
    {"llama", "swiglu", "rmsnorm", "rotary"},
    {"mistral", "swiglu", "rmsnorm", "rotary", false, false, 8},
    {"ministral", "swiglu", "rmsnorm", "rotary", false, false, 8},
    {"qwen2", "swiglu", "rmsnorm", "rotary", false, false, 32, 0, 0, kQueryBiases},
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
    {"mixtral",
     "swiglu",
     "rmsnorm",
     "rotary",
     false,
     false,
     8,
     0,
     0,
     {},
     "num_local_experts",
     "intermediate_size"},
    {"qwen2_moe", "swiglu", "rmsnorm", "rotary", false, false, 16, 0, 0, kQueryBiases, "num_experts",
     "moe_intermediate_size"},
    {"qwen3_moe", "swiglu", "rmsnorm", "rotary", false, false, 4, 0, 0, kQueryNorms, "num_experts",
     "moe_intermediate_size"},
    {"olmoe", "swiglu", "rmsnorm", "rotary", false, false, 0, 0, 0, kQueryNorms, "num_experts",
     "intermediate_size"},
    deepseek("deepseek_v2"),
    deepseek("deepseek_v3"),
    deepseek("kimi_k2"),
};

constexpr std::string_view kExperts = "is a mixture of experts of another kind than mixtral or qwen3_moe";
constexpr std::string_view kEncoder = "has an encoder";
constexpr std::string_view kStates = "has state-space or recurrent layers";

constexpr Foreign kForeign[] = {
    {"dbrx", kExperts},
    {"gpt_oss", kExperts},
    {"granitemoe", kExperts},
    {"phimoe", kExperts},
    {"llama4", kExperts},
    {"llama4_text", kExperts},
    {"grok-1", kExperts},
    {"jetmoe", kExperts},
    {"glm4_moe", kExperts},
    {"ernie4_5_moe", kExperts},
    {"nllb-moe", kExperts},
    {"deepseek", kExperts},
    {"minicpm3", "has multi-head latent attention (MLA) of another kind than deepseek_v3"},
    {"t5", kEncoder},
    {"mt5", kEncoder},
    {"bart", kEncoder},
    {"whisper", kEncoder},
    {"bert", kEncoder},
    {"roberta", kEncoder},
    {"deberta-v2", kEncoder},
    {"vit", kEncoder},
    {"mamba", kStates},
    {"mamba2", kStates},
    {"jamba", kStates},
    {"rwkv", kStates},
    {"falcon_mamba", kStates},
    {"recurrent_gemma", kStates},
    {"zamba2", kStates},
    {"bamba", kStates},
    {"nemotron_h", kStates},
    {"qwen3_next", kStates},
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

namespace {

/// Keys that neither time nor memory depend on.
constexpr std::array kHarmless = {
    std::string_view{"architectures"},
    std::string_view{"auto_map"},
    std::string_view{"bos_token_id"},
    std::string_view{"eos_token_id"},
    std::string_view{"pad_token_id"},
    std::string_view{"unk_token_id"},
    std::string_view{"sep_token_id"},
    std::string_view{"decoder_start_token_id"},
    std::string_view{"initializer_range"},
    std::string_view{"layer_norm_epsilon"},
    std::string_view{"layer_norm_eps"},
    std::string_view{"rms_norm_eps"},
    std::string_view{"norm_eps"},
    std::string_view{"norm_epsilon"},
    std::string_view{"pretraining_tp"},
    std::string_view{"rope_theta"},
    std::string_view{"rope_scaling"},
    std::string_view{"rope_parameters"},
    std::string_view{"rotary_pct"},
    std::string_view{"rotary_emb_base"},
    std::string_view{"rotary_dim"},
    std::string_view{"rotary"},
    std::string_view{"partial_rotary_factor"},
    std::string_view{"torch_dtype"},
    std::string_view{"dtype"},
    std::string_view{"transformers_version"},
    std::string_view{"use_cache"},
    std::string_view{"model_type"},
    std::string_view{"max_window_layers"},
    std::string_view{"summary_activation"},
    std::string_view{"summary_first_dropout"},
    std::string_view{"summary_proj_to_labels"},
    std::string_view{"summary_type"},
    std::string_view{"summary_use_proj"},
    std::string_view{"task_specific_params"},
    std::string_view{"attn_pdrop"},
    std::string_view{"embd_pdrop"},
    std::string_view{"n_ctx"},
    std::string_view{"scale_attn_weights"},
    std::string_view{"scale_attn_by_inverse_layer_idx"},
    std::string_view{"reorder_and_upcast_attn"},
    std::string_view{"_name_or_path"},
    std::string_view{"name_or_path"},
    std::string_view{"apply_residual_connection_post_layernorm"},
    std::string_view{"attention_softmax_in_fp32"},
    std::string_view{"masked_softmax_fusion"},
    std::string_view{"slow_but_exact"},
    std::string_view{"skip_bias_add"},
    std::string_view{"skip_bias_add_qkv"},
    std::string_view{"offset_alibi"},
    std::string_view{"seq_length"},
    std::string_view{"unk_token_id"},
    std::string_view{"prefix"},
    std::string_view{"init_std"},
    std::string_view{"layerdrop"},
    std::string_view{"_remove_final_layer_norm"},
    std::string_view{"do_sample"},
    std::string_view{"output_attentions"},
    std::string_view{"output_hidden_states"},
    std::string_view{"return_dict"},
    std::string_view{"tokenizer_class"},
    std::string_view{"gradient_checkpointing"},
    std::string_view{"original_max_position_embeddings"},
    std::string_view{"use_sliding_window"},
    std::string_view{"query_pre_attn_scalar"},
    std::string_view{"hidden_activation"},
    std::string_view{"embedding_multiplier"},
    std::string_view{"attention_multiplier"},
    std::string_view{"residual_multiplier"},
    std::string_view{"logits_scaling"},
    std::string_view{"logit_scale"},
    std::string_view{"rope_interleaved"},
    std::string_view{"classifier_dropout"},
    std::string_view{"n_ctx"},
    std::string_view{"quantization_config"},
    std::string_view{"tie_encoder_decoder"},
    std::string_view{"is_decoder"},
    std::string_view{"attention_types"},
    std::string_view{"resid_pdrop"},
    std::string_view{"logits_soft_cap"},
    std::string_view{"embd_pdrop"},
    std::string_view{"init_config"},
    std::string_view{"emb_pdrop"},
    std::string_view{"learned_pos_emb"},
    std::string_view{"logit_scale"},
    std::string_view{"no_bias"},
    std::string_view{"verbose"},
    std::string_view{"embedding_fraction"},
    std::string_view{"norm_type"},
    std::string_view{"init_device"},
    std::string_view{"bias_dropout_fusion"},
    std::string_view{"n_inner"},
    std::string_view{"clip_qkv"},
    std::string_view{"layer_norm_elementwise_affine"},
    std::string_view{"_attn_implementation_autoset"},
    std::string_view{"_attn_implementation"},
    std::string_view{"attn_implementation"},
    std::string_view{"training_seq_len"},
    std::string_view{"norm_topk_prob"},
    std::string_view{"aux_loss_alpha"},
    std::string_view{"ep_size"},
    std::string_view{"n_group"},
    std::string_view{"topk_group"},
    std::string_view{"topk_method"},
    std::string_view{"routed_scaling_factor"},
    std::string_view{"scoring_func"},
    std::string_view{"seq_aux"},
    std::string_view{"output_router_logits"},
    std::string_view{"router_aux_loss_coef"},
    std::string_view{"router_jitter_noise"},
};

}  // namespace

const std::set<std::string>& harmless_model_keys() {
  static const std::set<std::string> keys(kHarmless.begin(), kHarmless.end());
  return keys;
}

}  // namespace trainsim::exchange
