// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/deepspeed.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/base/text.hpp"
#include "sim/exchange/json_reader.hpp"

namespace trainsim::exchange {

namespace {

/// Sections and keys on which neither time nor memory of a step depend.
const std::set<std::string>& harmless_keys() {
  static const std::set<std::string> keys = {"steps_per_print",
                                             "gradient_clipping",
                                             "scheduler",
                                             "wall_clock_breakdown",
                                             "dump_state",
                                             "prescale_gradients",
                                             "gradient_predivide_factor",
                                             "flops_profiler",
                                             "tensorboard",
                                             "wandb",
                                             "csv_monitor",
                                             "comms_logger",
                                             "checkpoint",
                                             "zero_allow_untested_optimizer",
                                             "zero_force_ds_cpu_optimizer",
                                             "seed",
                                             "elasticity",
                                             "autotuning",
                                             "data_efficiency",
                                             "memory_breakdown",
                                             "disable_allgather",
                                             "graph_harvesting",
                                             "load_universal_checkpoint",
                                             "monitor_config",
                                             "comet"};
  return keys;
}

const std::set<std::string>& harmless_zero_keys() {
  static const std::set<std::string> keys = {"contiguous_gradients",
                                             "reduce_scatter",
                                             "allgather_partitions",
                                             "use_multi_rank_bucket_allreduce",
                                             "load_from_fp32_weights",
                                             "elastic_checkpoint",
                                             "stage3_gather_16bit_weights_on_model_save",
                                             "gather_16bit_weights_on_model_save",
                                             "stage3_gather_fp16_weights_on_model_save",
                                             "ignore_unused_parameters",
                                             "legacy_stage1",
                                             "pipeline_loading_checkpoint",
                                             "override_module_apply",
                                             "log_trace_cache_warnings",
                                             "enable_sanity_checks",
                                             "cpu_offload_use_pin_memory",
                                             "memory_efficient_linear",
                                             "round_robin_gradients"};
  return keys;
}

/// Keys of zero_optimization that matter and that this version has nothing for.
const std::map<std::string, std::string>& unsupported_zero_keys() {
  static const std::map<std::string, std::string> keys = {
      {"cpu_offload", "the optimizer stays on the GPU"},
      {"cpu_offload_param", "parameters stay on the GPU"},
      {"zenflow", "the optimizer stays on the GPU"},
      {"sub_group_size", "the optimizer updates all its parameters at once"},
      {"allgather_bucket_size", "buckets are those of reduce_bucket_size"},
      {"stage3_prefetch_bucket_size", "a layer is gathered at a time"},
      {"prefetch_bucket_size", "a layer is gathered at a time"},
      {"stage3_max_live_parameters", "two layers are gathered at a time"},
      {"max_live_parameters", "two layers are gathered at a time"},
      {"stage3_max_reuse_distance", "layers are released after use"},
      {"max_reuse_distance", "layers are released after use"},
      {"stage3_param_persistence_threshold", "all parameters are sharded"},
      {"param_persistence_threshold", "all parameters are sharded"},
      {"stage3_model_persistence_threshold", "all parameters are sharded"},
      {"stage3_module_granularity_threshold", "a layer is gathered at a time"},
      {"zero_hpz_partition_size",
       "there is no second copy of the parameters inside a node; see plan.sharding.group"},
      {"zero_quantized_weights", "parameters are gathered in the precision of the plan"},
      {"zero_quantized_nontrainable_weights", "parameters are kept in the precision of the plan"},
      {"zero_quantized_gradients", "gradients are reduced in plan.gradient_dtype"},
      {"mics_hierarchical_params_gather", "parameters are gathered by one collective"}};
  return keys;
}

/// Does the work of translate_deepspeed().
class DeepSpeed {
 public:
  DeepSpeed(JsonReader json, std::optional<std::int64_t> gpus) : json_(std::move(json)), gpus_(gpus) {}

  Translation run() {
    out_.set("software.framework", std::string("deepspeed"), "a DeepSpeed configuration");
    tensor_parallel();
    batch();
    zero();
    precision();
    optimizer();
    checkpointing();
    rest();
    return std::move(out_);
  }

 private:
  /// Copies a count, unless the trainer fills it in.
  std::optional<std::int64_t> copy(const std::string& key, const std::string& path) {
    used_.insert(key);
    if (json_.is_auto(key)) {
      out_.remark(Reason::kUnsupported, key + ": auto", "the trainer fills it in; set " + path + " yourself");
      return std::nullopt;
    }
    const std::optional<std::int64_t> count = json_.count(key);
    if (count) out_.set(path, *count, key);
    return count;
  }

  void tensor_parallel() {
    used_.insert("tensor_parallel");
    const std::optional<std::int64_t> degree = json_.count("tensor_parallel.autotp_size");
    if (degree && *degree > 1) {
      out_.set("plan.tensor_parallel", *degree, "tensor_parallel.autotp_size");
      tensor_ = *degree;
    }
    used_.insert("sequence_parallel_size");
    const std::optional<std::int64_t> sequence = json_.count("sequence_parallel_size");
    if (sequence.value_or(1) > 1)
      out_.remark(Reason::kUnsupported, "sequence_parallel_size " + std::to_string(*sequence),
                  "Ulysses sequence parallelism is left out");
    if (gpus_) out_.set("gpus", *gpus_, "--gpus");
  }

  void batch() {
    const auto micro = copy("train_micro_batch_size_per_gpu", "plan.micro_batch_size");
    const auto global = copy("train_batch_size", "plan.global_batch_size");
    const auto accumulation = copy("gradient_accumulation_steps", "plan.gradient_accumulation");
    // DeepSpeed works out the one of the three that is missing.
    const bool open = json_.is_auto("train_micro_batch_size_per_gpu") || json_.is_auto("train_batch_size") ||
                      json_.is_auto("gradient_accumulation_steps");
    if (micro || !global || open || !gpus_) return;
    const std::int64_t ranks = *gpus_ / std::max<std::int64_t>(1, tensor_) * accumulation.value_or(1);
    if (ranks > 0 && *global % ranks == 0 && *global > 0)
      out_.set("plan.micro_batch_size", *global / ranks,
               "train_batch_size / GPUs / gradient_accumulation_steps");
  }

  void zero() {
    used_.insert("zero_optimization");
    const nlohmann::json* zero = json_.find("zero_optimization");
    const bool old_flag = zero != nullptr && zero->is_boolean();
    std::int64_t stage = old_flag && zero->get<bool>() ? 1 : 0;
    if (!old_flag && json_.is_auto("zero_optimization.stage")) {
      out_.remark(Reason::kUnsupported, "zero_optimization.stage: auto", "set plan.sharding yourself");
    } else if (!old_flag) {
      stage = json_.count("zero_optimization.stage").value_or(0);
    }
    constexpr std::int64_t highest = 3;
    if (stage > highest)
      throw InputError("error: zero_optimization.stage must be 0 to 3, not " + std::to_string(stage));
    // -1, the default, switches it off.
    const double group_size = json_.number("zero_optimization.mics_shard_size").value_or(-1);
    std::int64_t group = 0;
    if (group_size > 0) group = json_.count("zero_optimization.mics_shard_size").value_or(0);
    const std::string origin = zero == nullptr ? "no zero_optimization" : "zero_optimization.stage";
    const std::string offload = offloaded();
    if (stage == 0 && !offload.empty()) {
      out_.remark(Reason::kUnsupported, "offload_optimizer, offload_param",
                  "stage 0 shards nothing, and only shards are offloaded");
    }
    if (stage > 0 && (group > 0 || !offload.empty())) {
      const std::string groups = group > 0 ? ", group: " + std::to_string(group) : "";
      out_.set("plan.sharding", "{stage: " + std::to_string(stage) + groups + offload + "}",
               origin + (group > 0 ? ", mics_shard_size" : "") + (offload.empty() ? "" : ", offload_*"));
    } else {
      out_.set("plan.sharding", stage == 0 ? std::string("none") : "zero" + std::to_string(stage), origin);
    }
    const bool overlaps = json_.is_auto("zero_optimization.overlap_comm")
                              ? stage == highest
                              : json_.flag("zero_optimization.overlap_comm").value_or(stage == highest);
    out_.set(
        "plan.overlap_gradient_reduction", overlaps,
        json_.has("zero_optimization.overlap_comm") ? "overlap_comm" : "DeepSpeed's default for this stage");
    if (json_.is_auto("zero_optimization.reduce_bucket_size")) {
      out_.remark(
          Reason::kUnsupported, "reduce_bucket_size: auto",
          "the trainer fills it in, usually with hidden_size squared; set plan.bucket_parameters yourself");
    } else {
      constexpr std::int64_t usual = 500'000'000;
      const auto bucket = json_.count("zero_optimization.reduce_bucket_size");
      out_.set("plan.bucket_parameters", bucket.value_or(usual),
               bucket ? "reduce_bucket_size" : "DeepSpeed's default");
    }
    if (zero != nullptr && zero->is_object()) zero_rest(*zero);
  }

  /// ", offload: {optimizer: cpu, parameters: nvme}", or nothing.
  std::string offloaded() const {
    std::string places;
    for (const auto& [key, ours] :
         {std::pair("offload_optimizer", "optimizer"), {"offload_param", "parameters"}}) {
      const std::string device =
          json_.text(std::string("zero_optimization.") + key + ".device").value_or("none");
      if (device == "none") continue;
      if (!places.empty()) places += ", ";
      places.append(ours).append(": ").append(device);
    }
    return places.empty() ? "" : ", offload: {" + places + "}";
  }

  static bool is_off(const nlohmann::json& value) {
    if (value.is_null() || (value.is_boolean() && !value.get<bool>())) return true;
    if (value.is_number() && value.get<double>() <= 1) return true;
    if (!value.is_object()) return false;
    const auto device = value.find("device");
    return device != value.end() && device->is_string() && device->get<std::string>() == "none";
  }

  void zero_rest(const nlohmann::json& zero) {
    const std::set<std::string> used = {"stage",           "overlap_comm",      "reduce_bucket_size",
                                        "mics_shard_size", "offload_optimizer", "offload_param"};
    for (const auto& [key, value] : zero.items()) {
      if (used.count(key) > 0) continue;
      const auto known = unsupported_zero_keys().find(key);
      const std::string path = "zero_optimization." + key;
      if (harmless_zero_keys().count(key) > 0 || (known != unsupported_zero_keys().end() && is_off(value))) {
        out_.remark(Reason::kNoEffect, path);
      } else if (known != unsupported_zero_keys().end()) {
        out_.remark(Reason::kUnsupported, path + ": " + json_text(value), known->second);
      } else {
        out_.remark(Reason::kUnknown, path + ": " + json_text(value));
      }
    }
  }

  /// Whether a section is switched on; open when the trainer decides.
  std::optional<bool> enabled(const std::string& section) {
    used_.insert(section);
    if (!json_.has(section)) return false;
    if (json_.is_auto(section + ".enabled")) return std::nullopt;
    return json_.flag(section + ".enabled").value_or(false);
  }

  void precision() {
    const std::string bf16_key = json_.has("bfloat16") ? "bfloat16" : "bf16";
    const std::optional<bool> bf16 = enabled(bf16_key);
    const std::optional<bool> fp16 = enabled("fp16");
    used_.insert("bf16");
    std::string format = "fp32";
    if (fp16.value_or(false)) format = "fp16";
    if (bf16.value_or(false)) format = "bf16";
    if ((!bf16 || !fp16) && format == "fp32") {
      format = "bf16";
      out_.assume(
          "training is in bf16; the file leaves the choice to the trainer (auto), and plan.precision sets "
          "it");
    }
    out_.set("plan.precision", format, format == "fp32" ? "neither fp16 nor bf16" : format + ".enabled");
    used_.insert("data_types");
    used_.insert("communication_data_type");
    const std::string gradients = json_.text("data_types.grad_accum_dtype").value_or(format);
    const std::map<std::string, std::string> names = {{"fp32", "fp32"}, {"float32", "fp32"},
                                                      {"fp16", "fp16"}, {"float16", "fp16"},
                                                      {"bf16", "bf16"}, {"bfloat16", "bf16"}};
    const auto name = names.find(gradients);
    if (name == names.end())
      throw InputError("error: data_types.grad_accum_dtype is '" + gradients + "', none of fp32, fp16, bf16");
    out_.set("plan.gradient_dtype", name->second,
             json_.has("data_types.grad_accum_dtype") ? "data_types.grad_accum_dtype"
                                                      : "as the parameters, the default");
    const auto wire = json_.text("communication_data_type");
    if (wire && names.count(*wire) > 0 && names.at(*wire) != name->second)
      out_.remark(Reason::kUnsupported, "communication_data_type " + *wire,
                  "gradients are reduced in plan.gradient_dtype");
  }

  void optimizer() {
    used_.insert("optimizer");
    const std::string written = json_.text("optimizer.type").value_or("");
    if (written.empty()) return;
    const std::map<std::string, std::string> names = {
        {"adam", "adam"}, {"adamw", "adam"},     {"fusedadam", "adam"}, {"torch_adam", "adam"},
        {"lion", "lion"}, {"fusedlion", "lion"}, {"sgd", "sgd"},        {"adamw8bit", "adam-8bit"}};
    const auto name = names.find(lower(written));
    out_.set("plan.optimizer", name == names.end() ? std::string("adam") : name->second,
             "optimizer.type " + written);
    if (name == names.end()) out_.remark(Reason::kUnsupported, "optimizer " + written, "simulated as adam");
    if (json_.flag("optimizer.params.torch_adam").value_or(false))
      out_.remark(Reason::kNoEffect, "optimizer.params.torch_adam");
  }

  void checkpointing() {
    used_.insert("activation_checkpointing");
    if (!json_.has("activation_checkpointing")) return;
    if (json_.flag("activation_checkpointing.cpu_checkpointing").value_or(false))
      out_.remark(Reason::kUnsupported, "activation_checkpointing.cpu_checkpointing",
                  "checkpoints stay on the GPU; see plan.activation_offload");
    if (json_.flag("activation_checkpointing.partition_activations").value_or(false))
      out_.remark(Reason::kUnsupported, "activation_checkpointing.partition_activations",
                  "checkpoints are kept whole on every tensor-parallel rank");
    out_.assume(
        "no layer is recomputed: activation_checkpointing says how, and the model's code or the trainer "
        "(gradient_checkpointing) whether; plan.recompute: full sets it");
  }

  void rest() {
    for (const auto& [key, value] : json_.object().items()) {
      if (used_.count(key) > 0) continue;
      const bool off = value.is_object() && value.contains("enabled") && value["enabled"].is_boolean() &&
                       !value["enabled"].get<bool>();
      const std::string text = key + ": " + json_text(value);
      if (harmless_keys().count(key) > 0 || off) {
        out_.remark(Reason::kNoEffect, key);
      } else if (key == "compile" || key == "amp" || key == "pipeline" || key == "sparse_attention" ||
                 key == "hybrid_engine" || key == "compression_training" || key == "curriculum_learning" ||
                 key == "aio" || key == "quantize_training" || key == "sparse_gradients" ||
                 key == "progressive_layer_drop") {
        out_.remark(Reason::kUnsupported, text, "not simulated");
      } else {
        out_.remark(Reason::kUnknown, text);
      }
    }
  }

  JsonReader json_;
  std::optional<std::int64_t> gpus_;
  std::int64_t tensor_ = 1;
  std::set<std::string> used_;
  Translation out_;
};

}  // namespace

bool is_deepspeed(const std::string& json) {
  try {
    const JsonReader reader = parse_json(json);
    return reader.has("zero_optimization") || reader.has("train_batch_size") ||
           reader.has("train_micro_batch_size_per_gpu") || reader.has("fp16.enabled") ||
           reader.has("bf16.enabled");
  } catch (const InputError&) {
    return false;
  }
}

Translation translate_deepspeed(const std::string& json, std::optional<std::int64_t> gpus) {
  return DeepSpeed(parse_json(json), gpus).run();
}

}  // namespace trainsim::exchange
