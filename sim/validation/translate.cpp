// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/translate.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/base/text.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/resolve.hpp"
#include "sim/validation/gpu_names.hpp"
#include "sim/validation/tree.hpp"

namespace trainsim::validation {

using config::Entry;
using config::Kind;
using config::Value;

namespace {

/// A key of a row and the key of the configuration that it means.
struct Copied {
  std::string_view from;
  std::string_view to;
};

constexpr std::array<Copied, 26> kCopied = {{{"model.layers", "model.num_layers"},
                                             {"model.hidden", "model.hidden_size"},
                                             {"model.heads", "model.num_attention_heads"},
                                             {"model.kv_heads", "model.num_key_value_heads"},
                                             {"model.ffn", "model.intermediate_size"},
                                             {"model.vocab", "model.vocab_size"},
                                             {"model.seq", "model.sequence_length"},
                                             {"model.head_dim", "model.head_dim"},
                                             {"model.tied", "model.tie_word_embeddings"},
                                             {"model.mlp", "model.activation"},
                                             {"plan.tp", "plan.tensor_parallel"},
                                             {"plan.pp", "plan.pipeline_parallel"},
                                             {"plan.vpp", "plan.virtual_pipeline"},
                                             {"plan.dp", "plan.data_parallel"},
                                             {"plan.cp", "plan.context_parallel"},
                                             {"plan.ep", "plan.expert_parallel"},
                                             {"plan.etp", "plan.expert_tensor_parallel"},
                                             {"model.moe.experts", "model.experts.count"},
                                             {"model.moe.topk", "model.experts.per_token"},
                                             {"model.moe.expert_ffn", "model.experts.intermediate_size"},
                                             {"model.moe.dense_layers", "model.experts.dense_layers"},
                                             {"plan.sp", "plan.sequence_parallel"},
                                             {"plan.mbs", "plan.micro_batch_size"},
                                             {"plan.gbs", "plan.global_batch_size"},
                                             {"hardware.count", "gpus"},
                                             {"hardware.gpus_per_node", "cluster.gpus_per_node"}}};

/// What has to be known of a run before it can be simulated.
constexpr std::array<std::string_view, 9> kNeeded = {"model.layers", "model.hidden", "model.seq",
                                                     "plan.tp",      "plan.pp",      "plan.mbs",
                                                     "plan.gbs",     "hardware.gpu", "hardware.count"};

/// GPUs of a node when a row doesn't say.
constexpr double kUsualGpusPerNode = 8;

/// Keys of a row, by the mapping they stand in ("" = the row itself).
struct Known {
  std::string_view section;
  std::vector<std::string> keys;
};

const std::vector<Known>& known_keys() {
  static const std::vector<Known> known = {
      {"",
       {"id", "kind", "tier", "source", "model", "plan", "hardware", "measured", "derived", "missing",
        "inferred", "assumed", "notes", "unverified_fields", "config", "fitted", "group"}},
      {"model",
       {"name", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "head_dim", "tied", "mlp",
        "attention", "moe", "params_b", "params_exact"}},
      {"plan",
       {"tp", "pp", "vpp", "dp", "cp", "ep", "etp", "sp", "mbs", "gbs", "recompute", "optimizer_sharding",
        "precision", "schedule", "num_microbatches", "local_batch", "torch_compile", "async_tp"}},
      {"model.moe", {"experts", "topk", "expert_ffn", "shared", "shared_ffn", "dense_layers"}},
      {"hardware", {"gpu", "count", "gpus_per_node", "intra", "inter", "node"}}};
  return known;
}

bool has_word(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

/// A word of our language for the first of these that a source's free text contains.
struct Reading {
  std::string_view contains;
  std::string_view means;
};

std::optional<std::string> first_reading(const std::string& text, std::initializer_list<Reading> readings) {
  const std::string small = lower(text);
  for (const Reading& reading : readings) {
    if (has_word(small, reading.contains)) return std::string(reading.means);
  }
  return std::nullopt;
}

/// Does the work of translate() for one row.
class Translator {
 public:
  Translator(const Value& fields, Row& row, config::Report& report)
      : fields_(fields), row_(row), report_(report), config_(config::make_map(row.at)) {}

  void run() {
    check_keys();
    find_gaps();
    copy_fields();
    translate_words();
    translate_software();
    translate_profile();
    translate_cluster();
    assume_the_rest();
    overlay();
    row_.config = std::move(config_);
  }

 private:
  const Value* field(std::string_view path) const { return find_path(fields_, path); }
  std::string text(std::string_view path) const { return text_at(fields_, path); }
  bool given(std::string_view path) const { return field(path) != nullptr; }
  /// Whether the row's own `config` settles a value of the configuration.
  bool settled(std::string_view path) const { return given("config." + std::string(path)); }

  void set(std::string_view path, const std::string& word, std::string_view from) {
    const Value* origin = field(from);
    set_path(config_, path, config::make_scalar(word, origin == nullptr ? row_.at : origin->at));
  }

  void skip(const std::string& reason) {
    if (row_.skipped.empty()) row_.skipped = reason;
  }

  void assume(std::string_view path, const std::string& word, const std::string& sentence) {
    if (settled(path)) return;
    set(path, word, "");
    row_.assumptions.push_back(sentence);
    row_.incomplete = true;
  }

  void check_keys() {
    for (const Known& known : known_keys()) {
      const Value* section = known.section.empty() ? &fields_ : field(known.section);
      if (section == nullptr) continue;
      if (section->kind != Kind::kMap) {
        report_.add(section->at, std::string(known.section), "needs a mapping, not " + describe(*section));
        continue;
      }
      for (const Entry& entry : section->entries) check_key(entry, known);
    }
  }

  void check_key(const Entry& entry, const Known& known) {
    if (std::find(known.keys.begin(), known.keys.end(), entry.key) != known.keys.end()) return;
    const std::string near = closest_match(entry.key, known.keys);
    report_.add(entry.at, config::join_path(known.section, entry.key),
                "is not a key of a measured run" + (near.empty() ? "" : "; did you mean " + near + "?"));
  }

  void find_gaps() {
    const Value* missing = field("missing");
    row_.incomplete = missing != nullptr && !missing->items.empty();
    std::vector<std::string> gaps;
    for (const std::string_view path : kNeeded) {
      const bool cluster = path.starts_with("hardware.gpu") && settled("cluster");
      if (!given(path) && !cluster) gaps.emplace_back(path);
    }
    if (!gaps.empty()) {
      std::string list;
      for (const std::string& gap : gaps) list += (list.empty() ? "" : ", ") + gap;
      skip("incomplete: " + list + " unknown");
    }
  }

  void copy_fields() {
    for (const Copied& copied : kCopied) {
      const Value* value = field(copied.from);
      if (value != nullptr) set_path(config_, copied.to, *value);
    }
    copy_shared_experts();
    copy_latent_attention();
  }

  /// DeepSeek-V2 and -V3 have the same; other models of latent attention must say what theirs is.
  void copy_latent_attention() {
    if (!given("model.attention") || settled("model.latent_attention")) return;
    if (!lower(text("model.attention")).starts_with("mla"))
      return skip("attention '" + text("model.attention") + "' is not supported by this version");
    for (const Copied& part :
         {Copied{"q_lora_rank", "1536"}, Copied{"kv_lora_rank", "512"}, Copied{"qk_nope_head_dim", "128"},
          Copied{"qk_rope_head_dim", "64"}, Copied{"v_head_dim", "128"}})
      set("model.latent_attention." + std::string(part.from), std::string(part.to), "model.attention");
    config_.find("model")->value.erase("num_key_value_heads");
  }

  /// Given as the width of all shared experts, or as their number.
  void copy_shared_experts() {
    constexpr std::string_view width = "model.experts.shared_intermediate_size";
    if (const Value* all = field("model.moe.shared_ffn")) return set_path(config_, width, *all);
    const std::optional<double> shared = number_at(fields_, "model.moe.shared");
    const std::optional<double> each = number_at(fields_, "model.moe.expert_ffn");
    if (shared && each) set(width, config::format_number(*shared * *each), "model.moe.shared");
  }

  void translate_words() {
    word("plan.recompute", "plan.recompute",
         {{"none", "none"}, {"operators", "operators"}, {"selective", "selective"}, {"full", "full"}});
    word("plan.optimizer_sharding", "plan.sharding",
         {{"within", "within a group of ranks"},
          {"zero-3", "zero3"},
          {"zero3", "zero3"},
          {"zero-2", "zero2"},
          {"zero2", "zero2"},
          {"shard_grad_op", "zero2"},
          {"hsdp", "fsdp"},
          {"fsdp", "fsdp"},
          {"zero-1", "zero1"},
          {"zero1", "zero1"},
          {"distributed optimizer", "zero1"},
          {"zero-0", "none"},
          {"none", "none"}});
    translate_precision();
    word("plan.schedule", "plan.schedule",
         {{"zb-1p", "zb-h1"},
          {"zb-h1", "zb-h1"},
          {"zb-h2", "zb-h2"},
          {"interleaved", "interleaved"},
          {"1f1b-i", "interleaved"},
          {"1f1b", "1f1b"},
          {"gpipe", "gpipe"},
          {"none", ""}});
    const std::string schedule = lower(text("plan.schedule"));
    if (schedule == "zb-2p") skip("ZB-2p, a schedule found by search for each profile, is not simulated");
    if (schedule == "zb-1p")
      row_.assumptions.emplace_back(
          "ZB-1p, found by search within the memory of 1F1B, is simulated as ZB-H1, which has as much.");
    if (text_at(config_, "plan.sharding") == "within a group of ranks") {
      skip("sharding within a group of ranks is not supported by this version");
      config_.find("plan")->value.erase("sharding");
    }
  }

  void translate_precision() {
    if (lower(text("plan.precision")).find("fp4") != std::string::npos)
      return skip("precision '" + text("plan.precision") + "' is not supported by this version");
    word("plan.precision", "plan.precision",
         {{"fp8", "fp8"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"fp32", "fp32"}});
    // Megatron-Bridge calls scales of the tensor at hand current scaling.
    word("plan.precision", "plan.fp8.recipe",
         {{"mxfp8", "mxfp8"}, {"rowwise", "rowwise"}, {"fp8-cs", "tensorwise"}, {"", ""}});
  }

  /// Free text of a source as a word of the configuration.
  void word(std::string_view from, std::string_view to, std::initializer_list<Reading> readings) {
    const Value* value = field(from);
    if (value == nullptr) return;
    if (value->kind != Kind::kScalar) return set_path(config_, to, *value);
    const std::optional<std::string> meant = first_reading(value->text, readings);
    if (meant && meant->empty()) return;
    set(to, meant.value_or(value->text), from);
  }

  void translate_software() {
    if (text("plan.torch_compile") == "true") {
      set("software.launch", "compiled", "plan.torch_compile");
      set("software.fusion", "compiled", "plan.torch_compile");
    }
    if (text("plan.async_tp") == "true") {
      row_.assumptions.emplace_back("Asynchronous tensor parallelism is simulated as the ordinary kind.");
    }
  }

  /// Measured times of a stage (T_F, T_B, T_W of zero-bubble papers) stand for the cost model.
  void translate_profile() {
    const std::optional<double> forward = number_at(fields_, "measured.T_F_ms");
    const std::optional<double> input = number_at(fields_, "measured.T_B_ms");
    const std::optional<double> weight = number_at(fields_, "measured.T_W_ms");
    if (!forward || !input || !weight) return;
    set("plan.profile.forward", std::to_string(*forward) + " ms", "measured.T_F_ms");
    set("plan.profile.backward", std::to_string(*input + *weight) + " ms", "measured.T_B_ms");
    const std::string schedule = text_at(config_, "plan.schedule");
    if (schedule.starts_with("zb-"))
      set("plan.profile.weight", std::to_string(*weight) + " ms", "measured.T_W_ms");
  }

  void translate_cluster() {
    if (settled("cluster")) return;
    const std::optional<GpuPresets> presets = presets_for_gpu(text("hardware.gpu"));
    if (!presets) return skip("there is no preset for the GPU '" + text("hardware.gpu") + "'");
    set("cluster.extends", presets->cluster, "hardware.gpu");
    translate_network(presets->cluster);
  }

  /// "8x200Gb HDR", "4 x 100 Gb/s", "400 Gb/s per node", "400 Gb/s per GPU", "50 GB/s per GPU".
  void translate_network(const std::string& cluster) {
    const double per_node = number_at(fields_, "hardware.gpus_per_node").value_or(kUsualGpusPerNode);
    if (number_at(fields_, "hardware.count").value_or(0) <= per_node) return;
    static const std::regex ports(R"((\d+)\s*x\s*(\d+(?:\.\d+)?)\s*(gb|g))", std::regex::icase);
    static const std::regex shared(R"((\d+(?:\.\d+)?)\s*(gb)(?:/s|ps|it/s)?.*\bper (node|gpu))",
                                   std::regex::icase);
    const std::string inter = text("hardware.inter");
    std::smatch match;
    if (std::regex_search(inter, match, ports)) {
      set_network(match[1], std::stod(match[2]), match[3]);
    } else if (std::regex_search(inter, match, shared)) {
      const bool node = lower(match.str(3)) == "node";
      set_network(config::format_number(per_node), std::stod(match[1]) / (node ? per_node : 1), match[2]);
      if (node) row_.assumptions.emplace_back("The node's network bandwidth is spread over one NIC per GPU.");
    } else {
      if (per_node < kUsualGpusPerNode) {
        set("cluster.nics_per_node", text("hardware.gpus_per_node"), "hardware.gpus_per_node");
      }
      row_.assumptions.push_back("The network between nodes is not stated; that of " + cluster +
                                 " is taken.");
      row_.incomplete = true;
    }
  }

  /// NICs of a node and the rate of one, in GB/s when the unit has a capital B.
  void set_network(const std::string& nics, double rate, const std::string& unit) {
    const bool bytes = unit.ends_with('B');
    set("cluster.nics_per_node", nics, "hardware.inter");
    set("cluster.nic_bandwidth", config::format_number(rate) + (bytes ? " GB/s" : " Gb/s"), "hardware.inter");
  }

  void assume_the_rest() {
    if (!given("model.heads")) assume_heads();
    if (!given("model.vocab")) {
      assume("model.vocab_size", "50257", "The vocabulary is not stated; 50,257 (GPT-2's) is taken.");
    }
    if (!given("plan.recompute") && !given("measured.T_F_ms")) {
      assume("plan.recompute", "none", "Recomputation is not stated; none is taken.");
    }
    // All models of experts that are measured have SwiGLU.
    if (given("model.moe") && !given("model.mlp") && !settled("model.activation"))
      set("model.activation", "swiglu", "model.moe");
    const bool gated = lower(text_at(config_, "model.activation")).ends_with("glu");
    if (!gated) return;
    for (const Copied& part :
         {Copied{"model.normalization", "rmsnorm"}, Copied{"model.position_embedding", "rotary"},
          Copied{"model.linear_bias", "false"}}) {
      if (!settled(part.from)) set(part.from, std::string(part.to), "model.mlp");
    }
    if (!given("model.tied") && !settled("model.tie_word_embeddings")) {
      set("model.tie_word_embeddings", "false", "model.mlp");
    }
  }

  /// Heads of about 128, as many as divide the hidden size and are divided by the tensor-parallel degree.
  void assume_heads() {
    const auto hidden = static_cast<std::int64_t>(number_at(fields_, "model.hidden").value_or(0));
    const auto tensor = static_cast<std::int64_t>(number_at(fields_, "plan.tp").value_or(1));
    if (hidden < 1 || tensor < 1) return;
    std::int64_t best = tensor;
    for (const std::int64_t heads : divisors(hidden)) {
      const auto miss = [hidden](std::int64_t count) { return std::abs(hidden - 128 * count); };
      if (heads % tensor == 0 && (hidden % best != 0 || miss(heads) < miss(best))) best = heads;
    }
    assume("model.num_attention_heads", std::to_string(best),
           "The number of heads is not stated; " + std::to_string(best) + " are taken.");
  }

  void overlay() {
    const Value* own = field("config");
    if (own == nullptr) return;
    if (own->kind != Kind::kMap) {
      report_.add(own->at, "config", "needs a mapping in the language of a configuration file");
      return;
    }
    Value base = std::move(config_);
    // The row's cluster stands instead of a derived one, not on top of it.
    if (settled("cluster")) base.erase("cluster");
    config_ = config::merge(std::move(base), *own);
  }

  const Value& fields_;
  Row& row_;
  config::Report& report_;
  Value config_;
};

}  // namespace

void translate(const Value& fields, Row& row, config::Report& report) {
  Translator(fields, row, report).run();
}

}  // namespace trainsim::validation
