// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/import.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/config/experiment.hpp"
#include "sim/config/parser.hpp"
#include "sim/config/presets.hpp"
#include "sim/config/utf8.hpp"
#include "sim/exchange/deepspeed.hpp"
#include "sim/exchange/huggingface.hpp"
#include "sim/exchange/megatron.hpp"
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

[[noreturn]] void fail(const std::string& file, const std::string& why) {
  throw InputError(file + ": error: " + why);
}

std::string read_file(const std::string& name) {
  if (name == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::error_code error;
  if (std::filesystem::is_directory(name, error)) fail(name, "is a folder; give the files in it");
  std::ifstream stream(name, std::ios::binary);
  if (!stream) fail(name, std::filesystem::exists(name, error) ? "cannot be read" : "no such file");
  std::string text(kLargestFile + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

void check_text(const File& file) {
  if (file.text.size() > kLargestFile) fail(file.name, "is larger than 1 MiB; no configuration or script is");
  if (file.text.find_first_not_of(" \t\r\n") == std::string::npos) fail(file.name, "is empty");
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
  if (file.name.ends_with(".toml")) return SourceKind::kTorchtitan;
  const std::size_t first = file.text.find_first_not_of(" \t\r\n");
  if (file.text[first] == '{')
    return is_deepspeed(file.text) ? SourceKind::kDeepSpeed : SourceKind::kHuggingFace;
  if (file.name.ends_with(".yaml") || file.name.ends_with(".yml"))
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

Translation translate_file(const File& file, const ImportRequest& request) {
  return named(file.name, [&] {
    if (file.kind == SourceKind::kHuggingFace) return translate_huggingface(file.text);
    if (file.kind == SourceKind::kDeepSpeed) return translate_deepspeed(file.text, request.gpus);
    return translate_torchtitan(file.text, request.gpus);
  });
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
  std::vector<File> files;
  for (const std::string& name : request.files) {
    File file = {name == "-" ? "standard input" : name, read_file(name), request.kind};
    check_text(file);
    if (file.kind == SourceKind::kAuto) file.kind = kind_of(file);
    files.push_back(std::move(file));
  }
  Translation all;
  bool scripts = false;
  for (const File& file : files) {
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
