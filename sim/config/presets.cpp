// SPDX-License-Identifier: Apache-2.0
#include "sim/config/presets.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/spelling.hpp"
#include "sim/config/experiment.hpp"
#include "sim/config/parser.hpp"
#include "sim/config/utf8.hpp"

#ifndef TRAINSIM_SOURCE_DIR
#define TRAINSIM_SOURCE_DIR "."
#endif
// From the folder of an installed program to that of its presets.
#ifndef TRAINSIM_DATA_FROM_PROGRAM
#define TRAINSIM_DATA_FROM_PROGRAM "../share/trainsim"
#endif

namespace trainsim::config {

namespace {

const std::map<std::string_view, std::string_view> kFolders = {{"models", "models"},
                                                               {"gpus", "topologies/gpus"},
                                                               {"clusters", "topologies/clusters"},
                                                               {"configs", "configs"}};

bool is_name_character(unsigned char c) {
  return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
}

/// Where the data of this program is if it was installed, wherever that tree may have been moved to; else
/// empty.
std::filesystem::path installed_root() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  std::filesystem::path root = (program.parent_path() / TRAINSIM_DATA_FROM_PROGRAM).lexically_normal();
  return std::filesystem::is_directory(root / "models", error) ? root : std::filesystem::path();
}

/// First line of a preset's description or source; empty when it has none or cannot be read.
std::string note_of(const std::filesystem::path& file) {
  // `list` shows what there is; a broken preset is reported when somebody uses it.
  Report ignored;
  const std::shared_ptr<const Source> source = read_source(file, 0, ignored);
  const std::optional<Value> content = source ? parse_mapping(source, ignored) : std::nullopt;
  if (!content) return "";
  for (const char* key : {"description", "source"}) {
    const Entry* entry = content->find(key);
    if (entry != nullptr && entry->value.kind == Kind::kScalar) return clip(entry->value.text);
  }
  return "";
}

}  // namespace

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

std::filesystem::path preset_file(const std::filesystem::path& folder, const std::string& name) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_character)) return {};
  std::filesystem::path file = folder / (name + ".yaml");
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) ? file : std::filesystem::path();
}

std::vector<std::string> preset_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string preset_hint(const std::filesystem::path& folder, const std::string& name) {
  const std::vector<std::string> names = preset_names(folder);
  if (names.empty())
    return "there are no presets in " + folder.string() + "; TRAINSIM_HOME can name another place";
  const std::string meant = closest_match(name, names);
  return meant.empty() ? "known: " + join_alternatives(names) : "did you mean " + meant + "?";
}

std::filesystem::path presets_root() {
  const char* home = std::getenv("TRAINSIM_HOME");
  if (home != nullptr && *home != '\0') return home;
  const std::filesystem::path installed = installed_root();
  return installed.empty() ? std::filesystem::path(TRAINSIM_SOURCE_DIR) : installed;
}

std::vector<Preset> list_presets(const std::string& kind) {
  std::vector<Preset> presets;
  const auto known = kFolders.find(kind);
  if (known == kFolders.end()) return presets;
  const std::filesystem::path folder = presets_root() / known->second;
  for (std::string& name : preset_names(folder)) {
    std::string note = note_of(preset_file(folder, name));
    presets.push_back({std::move(name), std::move(note)});
  }
  return presets;
}

}  // namespace trainsim::config
