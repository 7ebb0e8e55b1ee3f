// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/torchtitan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <toml++/toml.h>

#include "sim/base/diagnostics.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::exchange {

namespace {

/// Flavors of models, as a preset or a shape (torchtitan/models/*/__init__.py, release 0.2).
struct Flavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view preset;
  bool experts = false;
};

constexpr std::array<Flavor, 9> kFlavors = {{{"llama3", "8B", "llama3-8b"},
                                             {"llama3", "70B", "llama3-70b"},
                                             {"llama3", "405B", "llama3-405b"},
                                             {"llama2", "7B", "llama2-7b"},
                                             {"llama2", "70B", "llama2-70b"},
                                             {"llama3_simple_fsdp", "8B", "llama3-8b"},
                                             {"deepseek_v3", "671B", "deepseek-v3", true},
                                             {"qwen3", "30B-A3B", "qwen3-30b-a3b", true},
                                             {"qwen3", "235B-A22B", "qwen3-235b-a22b", true}}};

/// Flavors without a preset.
struct Shape {
  std::string_view model;
  std::string_view flavor;
  std::string_view yaml;
};

constexpr std::array<Shape, 4> kShapes = {
    {{"llama3", "debugmodel",
      "{num_layers: 6, hidden_size: 256, num_attention_heads: 16, intermediate_size: 768, vocab_size: 2048, "
      "sequence_length: 2048, activation: swiglu, position_embedding: rotary, normalization: rmsnorm, "
      "tie_word_embeddings: false, linear_bias: false}"},
     {"qwen3", "0.6B",
      "{num_layers: 28, hidden_size: 1024, num_attention_heads: 16, num_key_value_heads: 8, head_dim: 128, "
      "intermediate_size: 3072, vocab_size: 151936, sequence_length: 4096, activation: swiglu, "
      "position_embedding: rotary, normalization: rmsnorm, tie_word_embeddings: true, linear_bias: false}"},
     {"qwen3", "1.7B",
      "{num_layers: 28, hidden_size: 2048, num_attention_heads: 16, num_key_value_heads: 8, head_dim: 128, "
      "intermediate_size: 6144, vocab_size: 151936, sequence_length: 4096, activation: swiglu, "
      "position_embedding: rotary, normalization: rmsnorm, tie_word_embeddings: true, linear_bias: false}"},
     {"qwen3", "32B",
      "{num_layers: 64, hidden_size: 5120, num_attention_heads: 64, num_key_value_heads: 8, head_dim: 128, "
      "intermediate_size: 25600, vocab_size: 151936, sequence_length: 4096, activation: swiglu, "
      "position_embedding: rotary, normalization: rmsnorm, tie_word_embeddings: false, linear_bias: "
      "false}"}}};

/// Tables and keys on which neither time nor memory of a step depend.
const std::set<std::string>& harmless_keys() {
  static const std::set<std::string> keys = {
      "job",
      "profiling",
      "metrics",
      "lr_scheduler",
      "checkpoint",
      "comm",
      "memory_estimation",
      "validation",
      "logging",
      "debug",
      "model.hf_assets_path",
      "model.tokenizer_path",
      "model.print_after_conversion",
      "optimizer.lr",
      "optimizer.eps",
      "optimizer.beta1",
      "optimizer.beta2",
      "optimizer.weight_decay",
      "optimizer.implementation",
      "optimizer.fused",
      "optimizer.foreach",
      "training.dataset",
      "training.dataset_path",
      "training.max_norm",
      "training.steps",
      "training.gc_freq",
      "training.gc_debug",
      "training.seed",
      "training.deterministic",
      "training.warmup_steps",
      "training.debug_moe_force_load_balance",
      "training.data_parallel_type",
      "experimental.custom_import",
      "experimental.custom_args_module",
      "experimental.custom_model_path",
      "activation_checkpoint.early_stop",
      "activation_checkpoint.visualize_memory_budget_pareto",
      "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
      "compile.backend",
      "training.dump_folder",
      "parallelism.pipeline_parallel_schedule_csv",
      "parallelism.enable_compiled_autograd"};
  return keys;
}

/// Does the work of translate_torchtitan().
class Torchtitan {
 public:
  Torchtitan(toml::table table, std::optional<std::int64_t> gpus) : table_(std::move(table)), gpus_(gpus) {}

  Translation run() {
    out_.set("software.framework", std::string("fsdp"), "torchtitan");
    out_.set("software.attention", std::string("flash-2"), "PyTorch's scaled_dot_product_attention");
    model();
    degrees();
    data_parallel();
    batch();
    pipeline();
    recompute();
    numbers();
    compiled();
    rest();
    return std::move(out_);
  }

 private:
  /// The node under the first of several paths ("parallelism.tensor_parallel_degree") that is there.
  const toml::node* find(const std::vector<std::string>& paths, std::string* from = nullptr) {
    const toml::node* found = nullptr;
    for (const std::string& path : paths) {
      const toml::node* node = table_.at_path(path).node();
      if (node == nullptr) continue;
      used_.insert(path);
      if (found != nullptr) continue;
      found = node;
      if (from != nullptr) *from = path;
    }
    return found;
  }

  [[noreturn]] static void wrong(const std::string& path, const std::string& needs, const toml::node& node) {
    throw InputError("error: line " + std::to_string(node.source().begin.line) + ": " + path + " needs " +
                     needs + ", not " + shown(node));
  }

  static std::string shown(const toml::node& node) {
    std::ostringstream text;
    node.visit([&text](const auto& value) { text << value; });
    constexpr std::size_t longest = 60;
    return config::clip(text.str(), longest);
  }

  std::optional<std::int64_t> count(const std::vector<std::string>& paths, std::string* from = nullptr) {
    std::string path;
    const toml::node* node = find(paths, &path);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<std::int64_t>();
    if (!value) wrong(path, "a whole number", *node);
    if (from != nullptr) *from = path;
    return value;
  }

  std::optional<bool> flag(const std::vector<std::string>& paths) {
    std::string path;
    const toml::node* node = find(paths, &path);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<bool>();
    if (!value) wrong(path, "true or false", *node);
    return value;
  }

  std::optional<std::string> text(const std::vector<std::string>& paths) {
    std::string path;
    const toml::node* node = find(paths, &path);
    if (node == nullptr) return std::nullopt;
    auto value = node->value_exact<std::string>();
    if (!value) wrong(path, "a text", *node);
    return value;
  }

  void model() {
    const std::string name = text({"model.name"}).value_or("llama3");
    const std::string flavor = text({"model.flavor"}).value_or("debugmodel");
    const std::string origin = "model " + name + ", flavor " + flavor;
    for (const Flavor& known : kFlavors) {
      if (known.model != name || known.flavor != flavor) continue;
      has_experts_ = known.experts;
      return out_.set("model", std::string(known.preset), origin);
    }
    for (const Shape& known : kShapes) {
      if (known.model == name && known.flavor == flavor)
        return out_.set("model", std::string(known.yaml), origin);
    }
    const std::set<std::string> experts = {"llama4", "deepseek_v3", "gpt_oss"};
    if (experts.count(name) > 0 || flavor.find("moe") != std::string::npos ||
        flavor.find("A3B") != std::string::npos) {
      throw InputError("error: the model " + name + " " + flavor +
                       " is a mixture of experts, and its shape is not known to this version; known are "
                       "deepseek_v3 671B, qwen3 30B-A3B and qwen3 235B-A22B: name one of them, and write the "
                       "model's own shape into what is imported");
    }
    out_.remark(Reason::kUnsupported, origin,
                "its shape is not known to this version; give the model's config.json of Hugging Face as "
                "another file");
  }

  std::int64_t degree(const std::string& key, const std::string& path) {
    std::string from;
    const std::int64_t degree =
        count({"parallelism." + key, "training." + key, "experimental." + key}, &from).value_or(1);
    if (degree < 1) throw InputError("error: " + from + " must be 1 or more, not " + std::to_string(degree));
    if (!path.empty() && degree > 1) out_.set(path, degree, from.substr(from.find('.') + 1));
    return degree;
  }

  void degrees() {
    tensor_ = degree("tensor_parallel_degree", "plan.tensor_parallel");
    stages_ = degree("pipeline_parallel_degree", "plan.pipeline_parallel");
    context_ = degree("context_parallel_degree", "plan.context_parallel");
    const std::int64_t experts = degree("expert_parallel_degree", "plan.expert_parallel");
    const std::int64_t expert_tensor = degree("expert_tensor_parallel_degree", "");
    // Without expert parallelism torchtitan ignores the degree, and splits experts as everything else.
    if (experts > 1) out_.set("plan.expert_tensor_parallel", expert_tensor, "expert_tensor_parallel_degree");
    context_communication();
    if (tensor_ > 1) out_.set("plan.sequence_parallel", true, "torchtitan shards norms along the sequence");
    for (const char* key : {"disable_loss_parallel", "enable_loss_parallel"})
      flag({"parallelism." + std::string(key), "training." + std::string(key)});
    if (flag({"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"})
            .value_or(false))
      out_.remark(Reason::kUnsupported, "enable_async_tensor_parallel",
                  "tensor-parallel communication overlaps with weight gradients only");
  }

  /// PyTorch gathers keys and values ("allgather"), or passes them on ("alltoall", a shift by one).
  void context_communication() {
    const std::string way = text({"parallelism.context_parallel_rotate_method"}).value_or("allgather");
    if (context_ == 1 || way == "alltoall") return;
    out_.set("plan.context_communication", std::string("all_gather"), "context_parallel_rotate_method");
  }

  void data_parallel() {
    replicas_ = degree("data_parallel_replicate_degree", "");
    std::int64_t shards = count({"parallelism.data_parallel_shard_degree",
                                 "training.data_parallel_shard_degree", "training.data_parallel_degree"})
                              .value_or(-1);
    const std::int64_t others = tensor_ * stages_ * context_ * replicas_;
    if (shards < 1 && gpus_) shards = std::max<std::int64_t>(1, *gpus_ / others);
    if (!gpus_ && shards > 0) gpus_ = shards * others;
    if (gpus_) out_.set("gpus", *gpus_, "the degrees of parallelism");
    shards_ = shards;
    sharding();
  }

  void sharding() {
    const std::string reshard = text({"parallelism.fsdp_reshard_after_forward"}).value_or("default");
    // By default parameters stay gathered with a pipeline, whose micro-batches would gather them again.
    const bool keeps = reshard == "never" || (reshard == "default" && stages_ > 1);
    const bool offloads =
        flag({"training.enable_cpu_offload", "experimental.enable_cpu_offload"}).value_or(false);
    if (shards_ == 1 && context_ == 1) {
      out_.set("plan.sharding", std::string("none"), "data_parallel_shard_degree 1");
    } else if (!keeps && !offloads && (replicas_ == 1 || shards_ < 1)) {
      out_.set("plan.sharding", std::string("zero3"), "FSDP");
    } else {
      std::string value = "{stage: 3";
      if (replicas_ > 1 && shards_ > 0) value += ", group: " + std::to_string(shards_ * context_);
      if (keeps) value += ", reshard_after_forward: false";
      if (offloads) value += ", offload: {optimizer: cpu, parameters: cpu}";
      std::string origin = replicas_ > 1 && shards_ > 0 ? "hybrid FSDP" : "FSDP";
      if (keeps) origin += ", fsdp_reshard_after_forward";
      if (offloads) origin += ", enable_cpu_offload";
      out_.set("plan.sharding", value + "}", origin);
    }
    if (replicas_ > 1 && shards_ < 1)
      out_.remark(Reason::kUnsupported, "data_parallel_replicate_degree " + std::to_string(replicas_),
                  "how many ranks hold a copy follows from the number of GPUs; give --gpus");
  }

  void batch() {
    std::string from;
    constexpr std::int64_t usual = 8;
    const std::int64_t local =
        count({"training.local_batch_size", "training.batch_size"}, &from).value_or(usual);
    const std::int64_t global = count({"training.global_batch_size"}).value_or(-1);
    const std::string origin = from.empty() ? "torchtitan's default" : from.substr(from.find('.') + 1);
    const std::int64_t piece = pipeline_micro_batch(local);
    if (piece < 1 || local < 1) throw InputError("error: the batch sizes must be 1 or more");
    out_.set("plan.micro_batch_size", piece,
             stages_ > 1 ? origin + " in pieces of pipeline_parallel_microbatch_size" : origin);
    if (global > 0) {
      out_.set("plan.global_batch_size", global, "global_batch_size");
    } else if (stages_ > 1) {
      out_.set("plan.gradient_accumulation", local / piece, "the pieces of " + origin);
    }
    constexpr std::int64_t usual_length = 2048;
    const auto length = count({"training.seq_len"});
    out_.set("plan.sequence_length", length.value_or(usual_length),
             length ? "seq_len" : "torchtitan's default");
  }

  std::int64_t pipeline_micro_batch(std::int64_t local) {
    const std::int64_t piece = count({"parallelism.pipeline_parallel_microbatch_size"}).value_or(1);
    const auto pieces =
        count({"experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatches"});
    if (stages_ == 1) return local;
    if (pieces && *pieces > 0) return local / *pieces;
    return piece;
  }

  void pipeline() {
    std::string path;
    const std::string schedule =
        text({"parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"})
            .value_or("1F1B");
    const auto per_stage = count({"parallelism.pipeline_parallel_layers_per_stage"});
    for (const char* key : {"parallelism.pipeline_parallel_first_stage_less_layers",
                            "parallelism.pipeline_parallel_last_stage_less_layers"})
      count({key});
    for (const char* key :
         {"parallelism.module_fqns_per_model_part", "parallelism.pipeline_parallel_split_points",
          "experimental.pipeline_parallel_split_points"}) {
      if (find({key}) != nullptr && stages_ > 1)
        out_.remark(Reason::kUnsupported, key, "stages are even; see plan.pipeline_layout");
    }
    if (stages_ == 1) return;
    const std::map<std::string, std::string> names = {{"1F1B", "1f1b"},
                                                      {"1f1b", "1f1b"},
                                                      {"GPipe", "gpipe"},
                                                      {"gpipe", "gpipe"},
                                                      {"Interleaved1F1B", "interleaved"}};
    const auto name = names.find(schedule);
    if (name == names.end()) {
      out_.remark(Reason::kUnsupported, "pipeline_parallel_schedule " + schedule, "simulated as 1f1b");
      out_.set("plan.schedule", std::string("1f1b"), "pipeline_parallel_schedule " + schedule);
      return;
    }
    out_.set("plan.schedule", name->second, "pipeline_parallel_schedule");
    if (name->second == "interleaved") {
      out_.set("plan.virtual_pipeline", std::int64_t{2}, "torchtitan's default");
      if (per_stage)
        out_.remark(Reason::kUnsupported, "pipeline_parallel_layers_per_stage " + std::to_string(*per_stage),
                    "two chunks are written for each rank; set plan.virtual_pipeline to layers / stages / "
                    "this number");
    }
  }

  void recompute() {
    const std::string mode = text({"activation_checkpoint.mode"}).value_or("selective");
    const toml::node* option = find({"activation_checkpoint.selective_ac_option"});
    const std::string kind = option == nullptr ? "2" : option->value<std::string>().value_or(shown(*option));
    find({"activation_checkpoint.memory_budget"});
    if (mode == "none" || mode == "full")
      return out_.set("plan.recompute", mode, "activation_checkpoint.mode");
    if (mode == "selective" && kind == "1")
      return out_.set("plan.recompute", std::string("full"), "selective_ac_option 1: every layer");
    const std::string written = "activation_checkpoint " + mode + (mode == "selective" ? " " + kind : "");
    if (mode == "selective" && kind == "op" && !has_experts_)
      return out_.set("plan.recompute", std::string("operators"), "selective_ac_option op");
    if (mode == "selective" && kind == "op") {
      out_.set("plan.recompute", std::string("{granularity: selective, modules: [layernorm, activation]}"),
               written);
      out_.remark(
          Reason::kUnsupported, written,
          "the operators that torchtitan recomputes of a model with experts are approximated by norms "
          "and activations");
      return;
    }
    out_.set("plan.recompute", std::string("full"), written);
    out_.remark(Reason::kUnsupported, written,
                mode == "selective" ? "every layer is recomputed instead of every " + kind + "th"
                                    : "every layer is recomputed");
  }

  void numbers() {
    const std::string parameters = text({"training.mixed_precision_param"}).value_or("bfloat16");
    const std::string whole = text({"training.dtype"}).value_or("float32");
    const std::string reduce = text({"training.mixed_precision_reduce"}).value_or("float32");
    const std::string format = parameters == "bfloat16" ? "bf16" : "fp32";
    if (!float8()) out_.set("plan.precision", format, "mixed_precision_param");
    out_.set("plan.gradient_dtype", std::string(reduce == "bfloat16" ? "bf16" : "fp32"),
             "mixed_precision_reduce");
    if (whole == "bfloat16")
      out_.remark(Reason::kUnsupported, "training.dtype bfloat16", "optimizer state is simulated in fp32");
    const std::string optimizer = text({"optimizer.name"}).value_or("AdamW");
    out_.set("plan.optimizer", std::string("adam"), "optimizer " + optimizer);
    if (optimizer != "AdamW" && optimizer != "Adam")
      out_.remark(Reason::kUnsupported, "optimizer " + optimizer, "simulated as adam");
    if (flag({"optimizer.early_step_in_backward"}).value_or(false))
      out_.remark(Reason::kUnsupported, "early_step_in_backward", "the optimizer runs after backward");
    const std::string norm = text({"model.norm_type"}).value_or("rmsnorm");
    if (norm.find("rmsnorm") == std::string::npos)
      out_.remark(Reason::kUnsupported, "norm_type " + norm, "the preset's rmsnorm is simulated");
  }

  /// Whether linear layers multiply in 8 bits, as torchao's converters float8 and mx make them.
  bool float8() {
    const toml::node* converters = find({"model.converters"});
    const auto converted = [&](const char* name) {
      return converters != nullptr && shown(*converters).find(name) != std::string::npos;
    };
    const bool mx = converted("mx");
    const bool active = mx || converted("float8") || flag({"float8.enable_float8_linear"}).value_or(false);
    if (active) {
      std::string recipe =
          text({"quantize.linear.float8.recipe_name", "float8.recipe_name"}).value_or("tensorwise");
      if (recipe == "rowwise_with_gw_hp") {
        out_.remark(Reason::kUnsupported, "recipe_name " + recipe,
                    "weight gradients are multiplied in 8 bits, too");
        recipe = "rowwise";
      }
      const bool gathers = flag({"quantize.linear.float8.enable_fsdp_float8_all_gather",
                                 "float8.enable_fsdp_float8_all_gather"})
                               .value_or(false);
      out_.set("plan.precision", std::string("fp8"), mx ? "converter mx" : "converter float8");
      out_.set("plan.fp8",
               "{recipe: " + (mx ? "mxfp8" : recipe) + ", parameters: " + (gathers ? "true" : "false") + "}",
               gathers ? "recipe_name, enable_fsdp_float8_all_gather" : "recipe_name");
    }
    used_.insert("float8");
    used_.insert("quantize");
    used_.insert("mx");
    return active;
  }

  void compiled() {
    const bool enabled = flag({"compile.enable", "training.compile"}).value_or(false);
    const toml::node* components = find({"compile.components"});
    const auto has = [&](const char* name) {
      return components == nullptr || shown(*components).find(name) != std::string::npos;
    };
    const bool compiles = enabled && has("model");
    out_.set("software.launch", std::string(compiles ? "compiled" : "eager"), "compile");
    out_.set("software.fusion", std::string(compiles ? "compiled" : "none"), "compile");
    // It compiles the loss since April 2025, when degrees had a table of their own, and did not in the months
    // before; logits that ranks share are not compiled here.
    const bool current = table_.contains("parallelism") || table_.contains("compile");
    if (enabled && has("loss") && current && tensor_ == 1)
      out_.set("software.loss", std::string("compiled"), "compile");
    out_.set("software.gradient_accumulation_fusion", false, "PyTorch's autograd adds weight gradients up");
    out_.set("plan.vocab_padding", std::int64_t{1}, "torchtitan does not pad");
  }

  bool is_used(const std::string& path) const { return used_.count(path) > 0; }

  /// Keys that nobody looked at.
  void rest() {
    for (const auto& [key, node] : table_) {
      const std::string section(key.str());
      if (is_used(section)) continue;
      if (harmless_keys().count(section) > 0) {
        out_.remark(Reason::kNoEffect, "[" + section + "]");
        continue;
      }
      const toml::table* inner = node.as_table();
      if (inner == nullptr) {
        out_.remark(Reason::kUnknown, section);
        continue;
      }
      for (const auto& [name, value] : *inner) {
        const std::string path = section + "." + std::string(name.str());
        if (is_used(path)) continue;
        if (section == "fault_tolerance") {
          out_.remark(Reason::kUnsupported, path + " = " + shown(value),
                      "one job without torchft is simulated");
        } else {
          const bool harmless = harmless_keys().count(path) > 0;
          out_.remark(harmless ? Reason::kNoEffect : Reason::kUnknown,
                      harmless ? path : path + " = " + shown(value));
        }
      }
    }
  }

  toml::table table_;
  std::optional<std::int64_t> gpus_;
  std::set<std::string> used_;
  bool has_experts_ = false;
  std::int64_t tensor_ = 1;
  std::int64_t stages_ = 1;
  std::int64_t context_ = 1;
  std::int64_t replicas_ = 1;
  std::int64_t shards_ = -1;
  Translation out_;
};

}  // namespace

Translation translate_torchtitan(const std::string& text, std::optional<std::int64_t> gpus) {
  try {
    return Torchtitan(toml::parse(text), gpus).run();
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    throw InputError("error: line " + std::to_string(at.line) + ", column " + std::to_string(at.column) +
                     ": is no TOML: " + std::string(error.description()));
  }
}

}  // namespace trainsim::exchange
