// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/import.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/base/diagnostics.hpp"
#include "sim/base/spelling.hpp"
#include "sim/config/experiment.hpp"
#include "sim/config/parser.hpp"
#include "sim/config/presets.hpp"
#include "sim/config/utf8.hpp"
#include "sim/exchange/arguments.hpp"
#include "sim/exchange/deepspeed.hpp"
#include "sim/exchange/huggingface.hpp"
#include "sim/exchange/kineto.hpp"
#include "sim/exchange/measured.hpp"
#include "sim/exchange/megatron.hpp"
#include "sim/exchange/megatron_timers.hpp"
#include "sim/exchange/source_file.hpp"
#include "sim/exchange/torchtitan.hpp"
#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {

namespace {

/// A file with its contents.
struct File {
  std::string name;
  std::string text;
  SourceKind kind = SourceKind::kAuto;
};

/// More than any configuration or script has.
constexpr std::size_t kLargestFile = 1 << 20;
/// More than a trace has that tools can still show.
constexpr std::size_t kLargestMeasurement = std::size_t{1} << 30;

/// Whether a file holds measured times and no plan.
bool is_measured(SourceKind kind) {
  return kind == SourceKind::kMegatronLog || kind == SourceKind::kKineto;
}

[[noreturn]] void fail(const std::string& file, const std::string& why) {
  throw InputError(file + ": error: " + why);
}

/// A log or a trace, if a text looks like one.
SourceKind measured_kind(const std::string& text) {
  if (is_kineto_trace(text)) return SourceKind::kKineto;
  return is_timer_log(text) ? SourceKind::kMegatronLog : SourceKind::kAuto;
}

/// Reads a file and finds out whether it is a log or a trace; of those, which may be large, as much as there
/// is. `any_size` reads on to tell what a large one is.
void read_file(const std::string& path, bool any_size, File& file) {
  SourceFile source(path, file.name);
  source.read_on(kLargestFile + 1, file.text);
  const bool more = file.text.size() > kLargestFile;
  if (file.kind == SourceKind::kAuto) file.kind = measured_kind(file.text);
  if (!more || !(is_measured(file.kind) || any_size)) return;
  constexpr std::size_t portion = std::size_t{1} << 24;
  while (!source.at_end() && file.text.size() <= kLargestMeasurement) source.read_on(portion, file.text);
  if (file.kind == SourceKind::kAuto) file.kind = measured_kind(file.text);
}

/// `any_size`: the file was read to its end to find out what it is.
void check_text(const File& file, bool any_size) {
  if (is_measured(file.kind)) {
    if (file.text.size() > kLargestMeasurement)
      fail(file.name, "is larger than 1 GiB; record fewer steps, or cut the log");
  } else if (file.text.size() > kLargestFile) {
    const std::string what = "is larger than 1 MiB, as no configuration or script is, and ";
    fail(file.name,
         what + (any_size ? "neither a log of Megatron-LM's timers nor a trace of PyTorch's profiler"
                          : "not known for a log or a trace by its beginning; say --kind "
                            "megatron-log or kineto if it is one"));
  }
  if (file.text.find_first_not_of(" \t\r\n") == std::string::npos) fail(file.name, "is empty");
  // Logs may have colours and bytes of other programs.
  if (is_measured(file.kind)) return;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::size_t size = config::code_point_bytes(rest);
    const bool control =
        static_cast<unsigned char>(rest[0]) < ' ' && rest[0] != '\n' && rest[0] != '\r' && rest[0] != '\t';
    if (size == 0 || control) fail(file.name, "is no text (UTF-8)");
    rest.remove_prefix(size);
  }
}

SourceKind kind_of(const File& file) {
  std::string_view name = file.name;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".toml")) return SourceKind::kTorchtitan;
  const std::size_t first = file.text.find_first_not_of(" \t\r\n");
  // TOML and tests of a shell begin with a bracket, too, but are no JSON.
  if (file.text[first] == '[' && nlohmann::json::accept(file.text))
    fail(file.name,
         "is a JSON list; a config.json of Hugging Face, a DeepSpeed configuration and a trace of PyTorch's "
         "profiler are objects ({…}); take the one that you mean out of the list");
  if (file.text[first] == '{')
    return is_deepspeed(file.text) ? SourceKind::kDeepSpeed : SourceKind::kHuggingFace;
  if (name.ends_with(".yaml") || name.ends_with(".yml"))
    fail(file.name,
         "YAML is not imported; a script with the options of Megatron-LM, a DeepSpeed configuration, a "
         "torchtitan TOML file or a config.json of Hugging Face is");
  if (file.text.find("\n[model]") != std::string::npos || file.text.find("\n[training]") != std::string::npos)
    return SourceKind::kTorchtitan;
  return SourceKind::kMegatron;
}

/// Runs a translator, with the file's name in front of what goes wrong.
template <class Translate>
Translation named(const std::string& name, const Translate& translate) {
  try {
    return translate();
  } catch (const InputError& error) {
    throw InputError(name + ": " + error.what());
  }
}

Translation translate_scripts(const std::vector<File>& files, const ImportRequest& request) {
  ShellScript script;
  std::string names;
  for (const File& file : files) {
    if (file.kind != SourceKind::kMegatron) continue;
    follow_script(script, file.text, file.name, request.defined);
    names += (names.empty() ? "" : ", ") + file.name;
  }
  Translation translation = named(names, [&] { return translate_megatron(script, request.gpus); });
  for (const std::string& document : script.documents) {
    const std::string plain = show_open(document);
    if (!is_deepspeed(plain)) continue;
    const std::string name = names + ", a DeepSpeed configuration in it";
    translation.forget_remarks("--deepspeed-config");
    translation.add(named(name, [&] { return translate_deepspeed(plain, request.gpus); }), name);
  }
  return translation;
}

/// Refuses definitions of variables that no script uses.
void check_definitions(const std::vector<File>& files, const ImportRequest& request) {
  std::set<std::string> used;
  std::string names;
  for (const File& file : files) {
    if (file.kind != SourceKind::kMegatron) continue;
    used.merge(used_variables(file.text, file.name));
    names += names.empty() ? "" : ", ";
    names += file.name;
  }
  for (const auto& [name, value] : request.defined) {
    if (used.count(name) > 0) continue;
    std::string message = "trainsim: error: --define ";
    message += config::clip(name);
    message += '=';
    message += config::clip(value);
    message += ": ";
    if (names.empty()) throw InputError(message + "none of the files is a script that has variables");
    message += names;
    // Of arguments any other is as close.
    const bool argument = whole_number(name).has_value();
    const std::string meant = argument ? "" : closest_match(name, {used.begin(), used.end()});
    throw InputError(message + " never uses $" + config::clip(name) +
                     (meant.empty() ? "; leave it out" : "; did you mean " + meant + "?"));
  }
}

Translation translate_file(const File& file, const ImportRequest& request) {
  return named(file.name, [&] {
    if (file.kind == SourceKind::kHuggingFace) return translate_huggingface(file.text);
    if (file.kind == SourceKind::kDeepSpeed) return translate_deepspeed(file.text, request.gpus);
    return translate_torchtitan(file.text, request.gpus);
  });
}

/// A --kind of logs or traces says so of none of these files.
[[noreturn]] void fail_kind(SourceKind kind, const std::vector<File>& files) {
  std::string message = "trainsim: error: --kind ";
  message += kind == SourceKind::kKineto
                 ? "kineto is for traces of PyTorch's profiler (JSON with traceEvents)"
                 : "megatron-log is for logs of Megatron-LM's timers (with \"across ranks (ms):\" or \"time "
                   "(ms) |\")";
  message += ", and of these files none is one: ";
  for (const File& file : files) message += (&file == files.data() ? "" : ", ") + file.name;
  throw InputError(message + "; leave --kind out to read them for what they are");
}

/// Groups that communicate inside of forward and backward by what the files say.
InnerGroups inner_groups(const Translation& all) {
  const auto split = [&all](std::string_view path) {
    const Setting* degree = all.find(path);
    return degree != nullptr && degree->value != "1";
  };
  InnerGroups inner;
  inner.tensor = split("plan.tensor_parallel") || split("plan.expert_tensor_parallel");
  inner.context = split("plan.context_parallel");
  inner.expert = split("plan.expert_parallel");
  return inner;
}

/// Adds what logs and traces measured to what the other files say.
void add_measured(const std::vector<File>& files, Translation& all) {
  const InnerGroups inner = inner_groups(all);
  std::vector<Measurement> measurements;
  std::string names;
  for (const File& file : files) {
    if (!is_measured(file.kind)) continue;
    try {
      measurements.push_back(file.kind == SourceKind::kKineto ? read_kineto_trace(file.text, inner)
                                                              : read_timer_log(file.text));
    } catch (const InputError& error) {
      throw InputError(file.name + ": " + error.what());
    }
    measurements.back().source = file.name;
    names += names.empty() ? "" : ", ";
    names += file.name;
  }
  if (measurements.empty()) return;
  try {
    translate_measured(joined(std::move(measurements)), all);
  } catch (const InputError& error) {
    throw InputError(names + ": " + error.what());
  }
}

/// Refuses a cluster that there is none of, before anything is read.
void check_cluster(const std::string& cluster) {
  if (cluster.empty()) return;
  const std::string start = "trainsim: error: --cluster " + config::clip(cluster) + ": ";
  if (config::is_path(cluster)) {
    std::error_code error;
    if (!std::filesystem::exists(cluster, error)) throw InputError(start + "no such file");
    return;
  }
  const std::filesystem::path folder = config::presets_root() / "topologies" / "clusters";
  if (config::preset_file(folder, cluster).empty())
    throw InputError(start + "no cluster preset is called so; " + config::preset_hint(folder, cluster));
}

/// What makes replicas of the GPUs impossible; "" if nothing does, or somebody has yet to say how many.
std::string replica_fault(const Translation& all) {
  const auto count = [&all](std::string_view path) -> std::int64_t {
    const Setting* setting = all.find(path);
    return setting == nullptr ? 1 : whole_number(setting->value).value_or(1);
  };
  if (all.find("gpus") == nullptr) return "";
  std::int64_t product = 1;
  std::string factors;
  for (const char* path : {"plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel"}) {
    const std::int64_t degree = count(path);
    if (degree < 1 || __builtin_mul_overflow(product, degree, &product)) return "";
    if (degree > 1)
      factors.append(factors.empty() ? "" : " x ").append(path).append(" ").append(std::to_string(degree));
  }
  const std::int64_t gpus = count("gpus");
  if (gpus % product == 0) return "";
  return "gpus is " + std::to_string(gpus) + ", which is no multiple of " + factors + " = " +
         std::to_string(product) + "; correct it, or give --gpus N";
}

/// What a check of the configuration finds.
std::string check(const std::string& yaml) {
  config::Report report;
  const auto source = std::make_shared<config::Source>("the imported configuration", ".", yaml, 0);
  try {
    std::optional<config::Value> root = config::parse_mapping(source, report);
    report.throw_if_any();
    if (root) config::resolve(std::move(*root), {}, "imported");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

Imported import_files(const ImportRequest& request) {
  check_cluster(request.cluster);
  // What measured says nothing of what ran, so that the kinds of logs and traces leave other files alone.
  const bool measured = is_measured(request.kind);
  std::vector<File> files;
  for (const std::string& path : request.files) {
    File file = {path == "-" ? "standard input" : path, "", measured ? SourceKind::kAuto : request.kind};
    read_file(path, measured, file);
    check_text(file, measured);
    if (file.kind == SourceKind::kAuto) file.kind = kind_of(file);
    files.push_back(std::move(file));
  }
  const auto of_kind = [&request](const File& file) { return file.kind == request.kind; };
  if (measured && std::none_of(files.begin(), files.end(), of_kind)) fail_kind(request.kind, files);
  check_definitions(files, request);
  Translation all;
  bool scripts = false;
  for (const File& file : files) {
    if (is_measured(file.kind)) continue;
    const bool script = file.kind == SourceKind::kMegatron;
    // Scripts are read as one: the first one's place is that of all.
    if (script && scripts) continue;
    all.add(script ? translate_scripts(files, request) : translate_file(file, request), file.name);
    scripts = scripts || script;
  }
  if (!request.cluster.empty()) {
    // Paths in a configuration are relative to it, and nobody knows yet where this one will lie.
    const bool path = config::is_path(request.cluster);
    all.set("cluster", quoted(path ? std::filesystem::absolute(request.cluster).string() : request.cluster),
            "--cluster");
  }
  if (request.gpus) all.set("gpus", *request.gpus, "--gpus");
  add_measured(files, all);
  // The check says so, too, but only when nothing is missing.
  const std::string fault = all.missing().empty() ? "" : replica_fault(all);
  if (!fault.empty()) all.assume(fault);
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const File& file : files) names.push_back(std::filesystem::path(file.name).filename().string());
  Imported imported;
  imported.yaml = to_yaml(all, names);
  imported.report = report_lines(all);
  if (all.missing().empty()) imported.fault = check(imported.yaml);
  return imported;
}

}  // namespace trainsim::exchange
