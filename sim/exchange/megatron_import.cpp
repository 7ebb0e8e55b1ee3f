// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/config/utf8.hpp"
#include "sim/exchange/arguments.hpp"
#include "sim/exchange/launch.hpp"
#include "sim/exchange/megatron.hpp"
#include "sim/exchange/megatron_model.hpp"
#include "sim/exchange/pipeline_split.hpp"

namespace trainsim::exchange {

namespace {

/// Options by which a command of Megatron-LM is known.
constexpr std::array<std::string_view, 5> kSignature = {"--num-layers", "--tensor-model-parallel-size",
                                                        "--hidden-size", "--micro-batch-size",
                                                        "--num-attention-heads"};

/// Options that versions before 2023 had, whose attention was not fused.
constexpr std::array<std::string_view, 5> kOldOptions = {"--DDP-impl", "--checkpoint-activations",
                                                         "--activations-checkpoint-method",
                                                         "--model-parallel-size", "--deepspeed"};

/// Models that are no decoder of alike layers.
struct Foreign {
  std::string_view option;
  std::string_view what;
};

constexpr std::array<Foreign, 7> kForeign = {
    {{"--hybrid-layer-pattern", "a hybrid of attention and state-space layers"},
     {"--hybrid-override-pattern", "a hybrid of attention and state-space layers"},
     {"--hybrid-attention-ratio", "a hybrid of attention and state-space layers"},
     {"--retro-add-retriever", "a retrieval-augmented model (RETRO)"},
     {"--heterogeneous-layers-config-path", "layers of different shapes"},
     {"--heterogeneous-layers-config-encoded-json", "layers of different shapes"},
     {"--decoder-num-layers", "an encoder and a decoder (T5)"}}};

bool is_megatron(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    return std::find(kSignature.begin(), kSignature.end(), name) != kSignature.end();
  });
}

/// Options without a command, which may be on several lines.
std::vector<std::string> bare_options(const ShellScript& script) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& words : script.commands) {
    if (words.front().starts_with("--")) all.insert(all.end(), words.begin(), words.end());
  }
  return all;
}

/// The words of the command that runs Megatron-LM; else of a variable that holds its options.
std::vector<std::string> megatron_words(const ShellScript& script, bool& from_variable) {
  for (auto words = script.commands.rbegin(); words != script.commands.rend(); ++words) {
    // What starts a shell with the command as text comes before the command itself.
    if (is_megatron(*words)) return words->front().starts_with("--") ? bare_options(script) : *words;
  }
  std::vector<std::string> best;
  for (const auto& [name, values] : script.variables) {
    std::vector<std::string> words;
    for (const std::string& value : values) {
      std::size_t start = 0;
      while (start < value.size()) {
        const std::size_t end = std::min(value.find_first_of(" \t\n", start), value.size());
        if (end > start) words.push_back(value.substr(start, end - start));
        start = end + 1;
      }
    }
    if (is_megatron(words) && words.size() > best.size()) best = std::move(words);
  }
  from_variable = !best.empty();
  return best;
}

/// Does the work of translate_megatron().
class Megatron {
 public:
  Megatron(const std::vector<std::string>& words, const ShellScript& script, std::optional<std::int64_t> gpus)
      : arguments_(words), script_(script), launch_(find_launch(script)), gpus_(gpus) {}

  Translation run() {
    refuse_foreign();
    old_ = std::any_of(kOldOptions.begin(), kOldOptions.end(),
                       [this](std::string_view option) { return arguments_.has(option); });
    world();
    translate_megatron_model(arguments_, out_);
    layers_ = arguments_.count(arguments_.has("--num-layers") ? "--num-layers" : "--encoder-num-layers")
                  .value_or(0);
    degrees();
    batch();
    whole_run();
    recompute();
    activation_offload();
    numbers();
    data_parallel();
    overlap();
    software();
    refuse_open();
    judge_rest();
    return std::move(out_);
  }

 private:
  /// Says of options that nobody asked for what they are.
  void judge_rest() {
    const bool dense = !has_experts(arguments_);
    for (const Argument& argument : arguments_.unused()) {
      if (is_launcher_option(argument.name)) continue;
      if (dense && is_expert_option(argument.name)) {
        out_.remark(Reason::kNoEffect, argument.name);
        continue;
      }
      const Remark remark = judge_megatron_option(argument.name, argument.text());
      out_.remark(remark.reason, remark.option, remark.why);
    }
  }

  static bool is_launcher_option(const std::string& name) {
    constexpr std::array<std::string_view, 9> options = {
        "--nnodes",    "--nproc-per-node", "--nodes", "--ntasks-per-node", "--gpus-per-node",
        "--num-nodes", "--num-gpus",       "--gres",  "--hostfile"};
    return std::find(options.begin(), options.end(), name) != options.end();
  }

  void refuse_foreign() {
    for (const Foreign& foreign : kForeign) {
      if (!arguments_.has(foreign.option)) continue;
      throw InputError("error: " + std::string(foreign.option) + ": the model has " +
                       std::string(foreign.what) + ", which this version cannot simulate; only decoders");
    }
  }

  /// What has to be given from outside before open texts have a value.
  std::set<std::string> inputs(const std::string& text) const {
    std::set<std::string> all;
    for (const std::string& variable : open_variables(text)) all.merge(inputs_of(script_, variable));
    return all;
  }

  /// Names all inputs that values hang on, and all that no input gives, at once.
  void refuse_open() const {
    std::vector<std::string> options;
    std::vector<std::string> unknowable;
    std::set<std::string> needed;
    for (const auto& [option, value] : arguments_.open()) {
      std::set<std::string> of_value = inputs(value);
      (of_value.empty() ? unknowable : options)
          .push_back(of_value.empty() ? option + " is " + show_open(value) : option);
      needed.merge(of_value);
    }
    std::string message;
    if (!options.empty())
      message = (options.size() == 1 ? "the value of " : "the values of ") + join_all(options) +
                (options.size() == 1 ? " hangs on " : " hang on ") + join_all(named(needed)) +
                ", which the script does not set; give " + defines(needed);
    if (!unknowable.empty())
      message += (message.empty() ? "the value of " : "; and the value of ") + join_all(unknowable) +
                 ", which only a running shell knows; write the value into the script";
    if (!message.empty()) throw InputError("error: " + message);
  }

  /// "a, b and c".
  static std::string join_all(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
      text += words[i];
    }
    return text;
  }

  /// Arguments of the script in order, and then variables.
  static std::vector<std::string> in_order(const std::set<std::string>& inputs) {
    std::vector<std::string> names(inputs.begin(), inputs.end());
    std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      const std::int64_t last = std::numeric_limits<std::int64_t>::max();
      return whole_number(a).value_or(last) < whole_number(b).value_or(last);
    });
    return names;
  }

  static std::vector<std::string> named(const std::set<std::string>& inputs) {
    std::vector<std::string> names = in_order(inputs);
    for (std::string& name : names) name.insert(0, 1, '$');
    return names;
  }

  /// "it with --define N=VALUE".
  static std::string defines(const std::set<std::string>& inputs) {
    std::string text = inputs.size() == 1 ? "it with" : "them with";
    for (const std::string& name : in_order(inputs)) text += " --define " + name + "=VALUE";
    return text;
  }

  std::optional<std::int64_t> copy(std::string_view option, const std::string& path) {
    return copy_count(arguments_, out_, option, path);
  }

  void world() {
    if (gpus_) {
      out_.set("gpus", *gpus_, "--gpus");
    } else if (launch_.gpus()) {
      gpus_ = launch_.gpus();
      out_.set("gpus", *gpus_, launch_.origin);
    } else if (!launch_.wrong.empty()) {
      const auto& [option, value] = launch_.wrong.front();
      out_.assume("the number of GPUs is open, because " + option + " is '" + config::clip(value) +
                  "', which is no number; correct it, or give --gpus N");
    } else {
      std::set<std::string> needed;
      for (const std::string& value : launch_.open) needed.merge(inputs(value));
      if (!needed.empty())
        out_.assume("the number of GPUs hangs on " + join_all(named(needed)) +
                    ", which the script does not set; give " + defines(needed) + ", or --gpus N");
    }
  }

  void degrees() {
    const bool old_name = arguments_.has("--model-parallel-size");
    tensor_ =
        copy(old_name ? "--model-parallel-size" : "--tensor-model-parallel-size", "plan.tensor_parallel")
            .value_or(1);
    stages_ = copy("--pipeline-model-parallel-size", "plan.pipeline_parallel").value_or(1);
    context();
    experts();
    if (arguments_.has("--sequence-parallel") && tensor_ > 1)
      out_.set("plan.sequence_parallel", true, "--sequence-parallel");
    const PipelineSplit split = read_split();
    zero_bubble(split.chunks > 1);
    if (split.chunks > 1) out_.set("plan.virtual_pipeline", split.chunks, split.chunks_origin);
    if (!split.layout.empty()) out_.set("plan.pipeline_layout", list_text(split.layout), split.layout_origin);
    if (arguments_.has("--use-tp-pp-dp-mapping"))
      out_.set("plan.order", std::string("tp-pp-dp"), "--use-tp-pp-dp-mapping");
    if (gpus_ && tensor_ > 0 && stages_ > 0)
      replicas_ = *gpus_ / std::max<std::int64_t>(1, tensor_ * context_ * stages_);
  }

  void experts() {
    // Without the option the model may be another file's.
    if (arguments_.contains("--num-experts") && !has_experts(arguments_)) return;
    const char* const option = arguments_.has("--moe-expert-parallel-size") ? "--moe-expert-parallel-size"
                                                                            : "--expert-model-parallel-size";
    const std::optional<std::int64_t> ranks = arguments_.count(option);
    if (ranks.value_or(1) > 1) out_.set("plan.expert_parallel", *ranks, option);
    if (!has_experts(arguments_)) return;
    copy("--expert-tensor-parallel-size", "plan.expert_tensor_parallel");
    if (is_megatron_deepspeed(arguments_) && tensor_ > 1 &&
        !arguments_.has("--enable-expert-tensor-parallelism"))
      out_.set("plan.expert_tensor_parallel", std::int64_t{1}, "the default of Megatron-DeepSpeed");
  }

  /// Megatron-DeepSpeed's zero-bubble schedule, which has one chunk on each rank.
  void zero_bubble(bool interleaved) {
    if (!arguments_.has("--enable-zbh1-pipeline")) return;
    if (stages_ == 1) return out_.remark(Reason::kNoEffect, "--enable-zbh1-pipeline without a pipeline");
    if (interleaved)
      return out_.remark(Reason::kUnsupported, "--enable-zbh1-pipeline",
                         "zb-h1 is not supported together with virtual stages; simulated as interleaved");
    out_.set("plan.schedule", std::string("zb-h1"), "--enable-zbh1-pipeline");
    if (arguments_.has("--enable-zbh1-exact-semantics"))
      out_.remark(Reason::kUnsupported, "--enable-zbh1-exact-semantics",
                  "slots are those of zb-h1 as it is without this option");
  }

  void context() {
    context_ = std::max<std::int64_t>(1, arguments_.count("--context-parallel-size").value_or(1));
    const std::string type = arguments_.value("--cp-comm-type").value_or("p2p");
    if (context_ == 1) return;
    if (arguments_.values("--cp-comm-type").size() > 1)
      out_.remark(Reason::kUnsupported, arguments_.text("--cp-comm-type"),
                  "all layers exchange in one way; the first is taken");
    out_.set("plan.context_parallel", context_, "--context-parallel-size");
    if (type == "a2a+p2p") {
      out_.remark(Reason::kUnsupported, "--cp-comm-type a2a+p2p",
                  "the hierarchy of both is simulated as p2p");
    } else if (type != "p2p" && type != "allgather") {
      out_.set("plan.context_communication", type, "--cp-comm-type");
    } else if (type == "allgather") {
      out_.set("plan.context_communication", std::string("all_gather"), "--cp-comm-type");
    }
  }

  PipelineSplit read_split() {
    PipelineOptions options;
    options.layers = layers_;
    options.stages = stages_;
    options.layers_per_chunk = arguments_.count("--num-layers-per-virtual-pipeline-stage");
    options.chunks = arguments_.count("--num-virtual-stages-per-pipeline-rank");
    options.first = arguments_.count("--decoder-first-pipeline-num-layers");
    options.last = arguments_.count("--decoder-last-pipeline-num-layers");
    options.counts_embedding = arguments_.has("--account-for-embedding-in-pipeline-split");
    options.counts_loss = arguments_.has("--account-for-loss-in-pipeline-split");
    options.layout = arguments_.value("--pipeline-model-parallel-layout").value_or("");
    // Megatron-DeepSpeed's way to say the same.
    const std::string method = arguments_.value("--pp-partition-method").value_or("");
    if (method.find("type:transformer|embedding") != std::string::npos)
      options.counts_embedding = options.counts_loss = true;
    // Without them nothing can be split, and refuse_open() says so.
    return arguments_.open().empty() ? split_pipeline(options) : PipelineSplit();
  }

  void batch() {
    micro_batch_ = copy(arguments_.has("--micro-batch-size") ? "--micro-batch-size" : "--batch-size",
                        "plan.micro_batch_size")
                       .value_or(1);
    global_batch_ = copy("--global-batch-size", "plan.global_batch_size").value_or(0);
  }

  /// A count of the whole run. What no step depends on may stay open, and 0 of something ends nothing.
  std::optional<std::int64_t> run_count(std::string_view option) {
    const std::vector<std::string> values = arguments_.values(option);
    const bool open = !values.empty() && is_open(values.front());
    const std::optional<std::int64_t> count = open ? std::nullopt : arguments_.count(option);
    if (open || count == 0) out_.remark(Reason::kNoEffect, arguments_.text(option));
    return count == 0 ? std::nullopt : count;
  }

  /// Tokens of so many batches, if they can be counted.
  std::optional<std::int64_t> tokens_of(std::optional<std::int64_t> batches, std::int64_t sequences) {
    const std::optional<std::int64_t> length =
        arguments_.count(arguments_.has("--seq-length") ? "--seq-length" : "--encoder-seq-length");
    std::int64_t tokens = 0;
    if (!batches || !length || __builtin_mul_overflow(*batches, sequences, &tokens) ||
        __builtin_mul_overflow(tokens, *length, &tokens))
      return std::nullopt;
    return tokens;
  }

  /// Sequences of a step, which without --global-batch-size has one micro-batch for each replica; 0 where
  /// nobody knows.
  std::int64_t sequences_of_step() const {
    if (global_batch_ > 0) return global_batch_;
    const Setting* micro_batch = out_.find("plan.micro_batch_size");
    std::int64_t sequences = 0;
    if (micro_batch == nullptr || __builtin_mul_overflow(micro_batch_, replicas_, &sequences)) return 0;
    return sequences;
  }

  /// Training ends with the first of iterations, samples and (of Megatron-DeepSpeed) tokens.
  void whole_run() {
    const bool ramp = arguments_.has("--rampup-batch-size");
    const std::optional<std::int64_t> tokens = run_count("--train-tokens");
    const std::optional<std::int64_t> samples = run_count("--train-samples");
    std::optional<std::int64_t> steps = run_count("--train-iters");
    std::string origin = "--train-iters";
    if (samples && !ramp && global_batch_ > 0) {
      // Megatron-LM leaves out a last step that would not be full.
      steps = *samples / global_batch_;
      origin = "--train-samples by --global-batch-size";
    }
    const std::optional<std::int64_t> of_samples = tokens_of(samples, 1);
    const bool comparable = !tokens || !steps || tokens_of(1, sequences_of_step()).value_or(0) > 0;
    if (!comparable)
      out_.remark(
          Reason::kUnsupported, arguments_.text("--train-tokens"),
          "whether the run ends with it or with --train-iters hangs on the tokens of a step, which need "
          "--seq-length and --global-batch-size, or --micro-batch-size and the number of GPUs (--gpus N); "
          "the run is simulated with --train-iters");
    const std::optional<std::int64_t> of_steps = tokens_of(steps, sequences_of_step());
    const bool ends_earlier = tokens && comparable && (!of_steps || *tokens < *of_steps);
    if (ends_earlier && (!of_samples || *tokens < *of_samples)) {
      out_.set("run.tokens", *tokens, "--train-tokens");
    } else if (steps.value_or(0) > 0) {
      out_.set("run.steps", *steps, origin);
    } else if (of_samples.value_or(0) > 0) {
      out_.set("run.tokens", *of_samples, "--train-samples by --seq-length");
    }
    if (ramp) rampup();
  }

  /// A batch that grows, if our rules allow it; they are those of Megatron-LM.
  void rampup() {
    const std::vector<std::string> words = arguments_.values("--rampup-batch-size");
    if (std::any_of(words.begin(), words.end(), [](const std::string& word) { return is_open(word); }))
      return out_.remark(Reason::kUnsupported, arguments_.text("--rampup-batch-size"),
                         "only a running shell knows it; the run is simulated with the full batch all along");
    const std::vector<std::int64_t> numbers = arguments_.counts("--rampup-batch-size");
    constexpr std::size_t parts = 3;
    if (numbers.size() != parts)
      throw InputError(
          "error: --rampup-batch-size needs a start, an increment and a number of samples, not " +
          std::to_string(numbers.size()) + " numbers");
    const std::string option = arguments_.text("--rampup-batch-size");
    if (out_.find("run.steps") == nullptr && out_.find("run.tokens") == nullptr)
      return out_.remark(Reason::kUnsupported, option,
                         "every step is simulated with the full batch; of a whole run, "
                         "run.rampup_batch_size has the ramp");
    if (const std::string why = ramp_fault(numbers[0], numbers[1]); !why.empty())
      return out_.remark(Reason::kUnsupported, option,
                         why + ", so that the run is simulated with the full batch all along");
    out_.set("run.rampup_batch_size",
             "{start: " + std::to_string(numbers[0]) + ", increment: " + std::to_string(numbers[1]) +
                 ", samples: " + std::to_string(numbers[2]) + "}",
             "--rampup-batch-size");
  }

  /// Why a batch cannot grow so; "" if it can. Other degrees than the script's are a usual reason.
  std::string ramp_fault(std::int64_t start, std::int64_t increment) const {
    if (increment < 1 || start < 1) return "a batch starts with a sequence and grows by one at least";
    const bool interleaved = out_.find("plan.virtual_pipeline") != nullptr;
    const std::int64_t unit =
        micro_batch_ * std::max<std::int64_t>(replicas_, 1) * (interleaved ? stages_ : 1);
    if (unit > 0 && (start % unit != 0 || increment % unit != 0))
      return std::to_string(start) + " and " + std::to_string(increment) + " are no multiples of " +
             std::to_string(unit) + " (micro-batch size x replicas" + (interleaved ? " x stages" : "") + ")";
    if (global_batch_ > 0 && (global_batch_ <= start || (global_batch_ - start) % increment != 0))
      return "steps of " + std::to_string(increment) + " do not lead from " + std::to_string(start) +
             " to the batch of " + std::to_string(global_batch_);
    return "";
  }

  void recompute() {
    const bool short_form = arguments_.has("--recompute-activations");
    const bool old =
        arguments_.has("--checkpoint-activations") || arguments_.has("--activations-checkpoint-method");
    std::string granularity = arguments_.value("--recompute-granularity").value_or("");
    if (granularity.empty() && short_form) granularity = "selective";
    if (granularity.empty() && old) granularity = "full";
    const std::optional<std::string> method =
        arguments_.value(arguments_.has("--activations-checkpoint-method") ? "--activations-checkpoint-method"
                                                                           : "--recompute-method");
    const std::optional<std::int64_t> layers = arguments_.count(
        arguments_.has("--activations-checkpoint-num-layers") ? "--activations-checkpoint-num-layers"
        : arguments_.has("--checkpoint-num-layers")           ? "--checkpoint-num-layers"
                                                              : "--recompute-num-layers");
    if (granularity.empty()) return out_.set("plan.recompute", std::string("none"), "the default");
    if (method && *method != "uniform" && *method != "block")
      throw InputError("error: --recompute-method has the unknown value '" + config::clip(*method) + "'");
    if (granularity == "full")
      return out_.set("plan.recompute",
                      "{granularity: full, method: " + method.value_or("uniform") +
                          ", layers: " + std::to_string(layers.value_or(1)) + "}",
                      !old ? "--recompute-granularity, -method and -num-layers"
                      : arguments_.has("--checkpoint-activations") ? "--checkpoint-activations"
                                                                   : "--activations-checkpoint-method");
    if (granularity != "selective")
      throw InputError("error: --recompute-granularity has the unknown value '" + config::clip(granularity) +
                       "'");
    selective(short_form);
  }

  void selective(bool short_form) {
    const std::array<std::string_view, 5> known = {"core_attn", "mlp", "layernorm", "activation", "moe"};
    std::string modules;
    for (const std::string& module : arguments_.values("--recompute-modules")) {
      if (std::find(known.begin(), known.end(), module) == known.end()) {
        out_.remark(Reason::kUnsupported, "--recompute-modules " + module, "this version has no such module");
        continue;
      }
      modules += modules.empty() ? "" : ", ";
      modules += module;
    }
    const std::string origin = short_form ? "--recompute-activations" : "--recompute-granularity";
    if (modules.empty() || modules == "core_attn")
      return out_.set("plan.recompute", std::string("selective"), origin);
    out_.set("plan.recompute", "{granularity: selective, modules: [" + modules + "]}",
             origin + ", --recompute-modules");
  }

  /// Whether linear layers multiply in 8 bits: --fp8-format, or --fp8 as it is called now.
  bool eight_bits() {
    const char* const option = arguments_.has("--fp8-format") ? "--fp8-format" : "--fp8";
    if (!arguments_.has(option)) return false;
    out_.set("plan.precision", std::string("fp8"), option);
    const std::string recipe = arguments_.value("--fp8-recipe").value_or("delayed");
    const bool known =
        recipe == "delayed" || recipe == "tensorwise" || recipe == "mxfp8" || recipe == "blockwise";
    if (!known) out_.remark(Reason::kUnsupported, "--fp8-recipe " + recipe, "simulated as delayed");
    const bool parameters = arguments_.has("--fp8-param-gather") || arguments_.has("--fp8-param");
    out_.set(
        "plan.fp8",
        "{recipe: " + (known ? recipe : "delayed") + ", parameters: " + (parameters ? "true" : "false") + "}",
        arguments_.has("--fp8-recipe") ? "--fp8-recipe" : "the default");
    return true;
  }

  void activation_offload() {
    const std::int64_t layers = arguments_.count("--cpu-offloading-num-layers").value_or(0);
    if (layers == 0) return;
    out_.set("plan.activation_offload", "{layers: " + std::to_string(layers) + "}",
             "--cpu-offloading-num-layers");
  }

  void numbers() {
    const bool bf16 = arguments_.has("--bf16");
    const bool fp16 = arguments_.has("--fp16");
    const std::string precision = bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    if (!eight_bits()) out_.set("plan.precision", precision, bf16 || fp16 ? "--" + precision : "the default");
    const bool whole = arguments_.has("--accumulate-allreduce-grads-in-fp32");
    const bool reduced = arguments_.has("--grad-reduce-in-bf16");
    const bool fp32 = !reduced && (whole || precision != "fp16");
    std::string origin = "the default";
    if (whole) origin = "--accumulate-allreduce-grads-in-fp32";
    if (bf16 && !whole) origin = "what Megatron-LM does with --bf16";
    if (reduced) origin = "--grad-reduce-in-bf16";
    out_.set("plan.gradient_dtype", std::string(fp32 ? "fp32" : precision), origin);
    const std::string optimizer = arguments_.value("--optimizer").value_or("adam");
    if (optimizer == "sgd") {
      const bool plain = arguments_.number("--sgd-momentum").value_or(1) == 0;
      out_.set("plan.optimizer", std::string(plain ? "sgd" : "sgd-momentum"), "--optimizer");
    } else {
      if (optimizer != "adam")
        out_.remark(Reason::kUnsupported, "--optimizer " + optimizer, "simulated as adam");
      out_.set("plan.optimizer", std::string("adam"),
               arguments_.has("--optimizer") ? "--optimizer" : "the default");
    }
  }

  /// Whether the optimizer's shard lives in the host's memory; says so when there is no shard.
  bool offloads() {
    const bool megatron = arguments_.has("--optimizer-cpu-offload");
    const bool deepspeed = arguments_.has("--cpu-optimizer");
    if (!megatron && !deepspeed) return false;
    const bool sharded = megatron ? arguments_.has("--use-distributed-optimizer")
                                  : arguments_.count("--zero-stage").value_or(0) > 0;
    const char* option = megatron ? "--optimizer-cpu-offload" : "--cpu-optimizer";
    if (!sharded)
      out_.remark(Reason::kUnsupported, option, "only a sharded optimizer is offloaded; it stays on the GPU");
    return sharded;
  }

  void data_parallel() {
    const std::map<std::string, std::string> strategies = {
        {"no_shard", "none"}, {"optim", "zero1"}, {"optim_grads", "zero2"}, {"optim_grads_params", "zero3"}};
    const bool torch_fsdp = arguments_.has("--use-torch-fsdp2");
    const bool megatron_fsdp = arguments_.has("--use-megatron-fsdp") || arguments_.has("--use-custom-fsdp");
    const std::string strategy = arguments_.value("--data-parallel-sharding-strategy")
                                     .value_or(megatron_fsdp ? "optim_grads_params" : "");
    const bool keeps = arguments_.has("--torch-fsdp2-no-reshard-after-forward");
    const bool distributed = arguments_.has("--use-distributed-optimizer");
    fsdp_ = torch_fsdp || megatron_fsdp;
    if (torch_fsdp) {
      out_.set("plan.sharding", std::string(keeps ? "{stage: 3, reshard_after_forward: false}" : "zero3"),
               keeps ? "--use-torch-fsdp2, --torch-fsdp2-no-reshard-after-forward" : "--use-torch-fsdp2");
    } else if (megatron_fsdp && strategies.count(strategy) > 0) {
      out_.set("plan.sharding", strategies.at(strategy),
               "--use-megatron-fsdp, --data-parallel-sharding-strategy");
    } else {
      const std::int64_t zero = arguments_.count("--zero-stage").value_or(0);
      if (arguments_.has("--deepspeed"))
        out_.set("software.framework", std::string("deepspeed"), "--deepspeed");
      if (offloads()) {
        const std::int64_t stage = std::max<std::int64_t>(zero, 1);
        out_.set(
            "plan.sharding", "{stage: " + std::to_string(stage) + ", offload: {optimizer: cpu}}",
            arguments_.has("--cpu-optimizer") ? "--zero-stage, --cpu-optimizer" : "--optimizer-cpu-offload");
      } else if (zero > 0) {
        out_.set("plan.sharding", "zero" + std::to_string(zero), "--zero-stage");
      } else {
        out_.set("plan.sharding", std::string(distributed ? "zero1" : "none"),
                 distributed ? "--use-distributed-optimizer" : "the default");
      }
    }
  }

  /// FSDP that shards more than the optimizer gathers parameters under the passes, whatever options say.
  bool gathers_anyway() const {
    const Setting* sharding = out_.find("plan.sharding");
    return fsdp_ && sharding != nullptr && sharding->value != "zero1";
  }

  void overlap() {
    const bool torch_ddp = arguments_.value("--DDP-impl").value_or("local") == "torch";
    const bool gradients = arguments_.has("--overlap-grad-reduce") || torch_ddp;
    out_.set("plan.overlap_gradient_reduction", gradients,
             torch_ddp   ? "--DDP-impl"
             : gradients ? "--overlap-grad-reduce"
                         : "the default");
    if (arguments_.has("--overlap-param-gather") && !gathers_anyway())
      out_.set("plan.overlap_parameter_gather", true, "--overlap-param-gather");
    if (arguments_.has("--no-overlap-p2p-communication") || old_)
      out_.set("plan.overlap_point_to_point", false,
               old_ ? "not there yet" : "--no-overlap-p2p-communication");
    if (arguments_.has("--no-async-tensor-model-parallel-allreduce") || old_)
      out_.set("plan.overlap_tensor_communication", false,
               old_ ? "not there yet" : "--no-async-tensor-model-parallel-allreduce");
    if (arguments_.has("--no-scatter-gather-tensors-in-pipeline"))
      out_.set("plan.scatter_gather_transfers", false, "--no-scatter-gather-tensors-in-pipeline");
    buckets(gradients);
  }

  /// Megatron-LM makes buckets larger when there are many replicas.
  void buckets(bool overlapped) {
    constexpr std::int64_t least = 40'000'000;
    constexpr std::int64_t per_replica = 1'000'000;
    if (copy("--ddp-bucket-size", "plan.bucket_parameters")) return;
    if (overlapped && replicas_ * per_replica > least)
      out_.set("plan.bucket_parameters", replicas_ * per_replica,
               "Megatron-LM's default, a million for each replica");
  }

  void attention() {
    const std::optional<std::string> backend = arguments_.value("--attention-backend");
    const bool flash_flag = arguments_.has("--use-flash-attn") || arguments_.has("--use-flash-attn-v2");
    const bool local = arguments_.value("--transformer-impl").value_or("transformer_engine") == "local";
    const bool legacy = arguments_.has("--use-legacy-models") || old_;
    std::string kernel = "flash";
    std::string origin = flash_flag ? "--use-flash-attn" : "--attention-backend";
    if (backend) {
      if (*backend == "unfused" || *backend == "local") kernel = "standard";
    } else if (!flash_flag) {
      kernel = local || legacy ? "standard" : "flash";
      origin = local ? "--transformer-impl local" : legacy ? "the default of that time" : "the default";
      if (!local && !legacy)
        out_.assume(
            "attention is fused and layers are Transformer Engine's, the default since Megatron-LM core 0.7; "
            "for older versions write software.attention: standard");
      if (legacy && !local)
        out_.assume(
            "this is Megatron-LM before 2023, whose attention was not fused, because of options that later "
            "versions lack; else write software.attention: flash");
    }
    out_.set("software.attention", kernel, origin);
    if (local || legacy) {
      out_.set("software.transformer_engine", false, local ? "--transformer-impl local" : "not there yet");
    } else if (!fsdp_) {
      out_.set("software.transformer_engine", true, "the default");
    }
  }

  /// What Megatron-LM does itself, also with FSDP.
  void parts_of_its_own() {
    out_.set("software.fused_linears", std::string("[qkv, mlp]"), "Megatron-LM fuses them");
    out_.set("software.checkpoint_early_stop", false, "Megatron-LM has its own checkpoints");
  }

  void software() {
    attention();
    if (fsdp_) parts_of_its_own();
    if (arguments_.has("--no-persist-layer-norm") || old_)
      out_.set("software.persistent_norm", false, old_ ? "not there yet" : "--no-persist-layer-norm");
    if (arguments_.has("--no-gradient-accumulation-fusion") || old_)
      out_.set("software.gradient_accumulation_fusion", false,
               old_ ? "not there yet" : "--no-gradient-accumulation-fusion");
    const bool graph = arguments_.has("--enable-cuda-graph") || arguments_.has("--external-cuda-graph") ||
                       arguments_.value("--cuda-graph-impl").value_or("none") != "none";
    if (graph) out_.set("software.launch", std::string("cuda-graph"), "CUDA graphs");
    if (arguments_.has("--cross-entropy-loss-fusion")) {
      const bool engine = arguments_.value("--cross-entropy-fusion-impl").value_or("native") == "te";
      if (engine) out_.set("software.loss", std::string("fused"), "--cross-entropy-fusion-impl te");
      if (!engine)
        out_.remark(
            Reason::kUnsupported, "--cross-entropy-loss-fusion",
            "the native kernels keep tensors as large as the logits, as software.loss: standard does");
    }
  }

  Arguments arguments_;
  const ShellScript& script_;
  Launch launch_;
  std::optional<std::int64_t> gpus_;
  Translation out_;
  std::int64_t layers_ = 0;
  std::int64_t tensor_ = 1;
  std::int64_t stages_ = 1;
  std::int64_t context_ = 1;
  std::int64_t replicas_ = 0;
  std::int64_t micro_batch_ = 1;
  /// 0 where nobody knows.
  std::int64_t global_batch_ = 0;
  bool old_ = false;
  bool fsdp_ = false;
};

}  // namespace

bool runs_megatron(const ShellScript& script) {
  bool from_variable = false;
  return !megatron_words(script, from_variable).empty();
}

Translation translate_megatron(const ShellScript& script, std::optional<std::int64_t> gpus) {
  bool from_variable = false;
  const std::vector<std::string> words = megatron_words(script, from_variable);
  if (words.empty())
    throw InputError("error: no command with options of Megatron-LM, such as --num-layers, was found");
  Translation translation = Megatron(words, script, gpus).run();
  if (from_variable) translation.assume("the options are those of a variable, because no command has them");
  for (const std::string& note : script.notes) translation.assume(note);
  return translation;
}

}  // namespace trainsim::exchange
