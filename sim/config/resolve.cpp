// SPDX-License-Identifier: Apache-2.0
#include "sim/config/resolve.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sim/config/experiment.hpp"
#include "sim/config/parser.hpp"
#include "sim/config/presets.hpp"
#include "sim/config/readers.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

constexpr std::size_t kMaxChain = 8;
/// Characters of a path that are shown in a message.
constexpr std::size_t kLongestPath = 200;

/// A component in words, where its presets lie, and (for parts of a cluster) its key.
struct ComponentWords {
  Component component;
  std::string_view noun;
  std::string_view folder;
  std::string_view part_key;
};

constexpr std::array<ComponentWords, 6> kComponents = {{
    {Component::kModel, "model", "models", ""},
    {Component::kCluster, "cluster", "topologies/clusters", ""},
    {Component::kGpu, "GPU", "topologies/gpus", "gpu"},
    {Component::kIntraNode, "node", "topologies/nodes", "intra_node"},
    {Component::kNic, "NIC", "topologies/nics", "nic"},
    {Component::kFabric, "fabric", "topologies/fabrics", "fabric"},
}};

const ComponentWords& words_of(Component component) {
  return *std::find_if(kComponents.begin(), kComponents.end(),
                       [&](const ComponentWords& w) { return w.component == component; });
}

bool is_part(std::string_view key) {
  return std::any_of(kComponents.begin(), kComponents.end(),
                     [&](const ComponentWords& w) { return !w.part_key.empty() && w.part_key == key; });
}

/// What an entry of a merged mapping becomes.
Value merge_entry(const std::string& key, Value base, const Value& overlay) {
  if (overlay.kind != Kind::kMap || overlay.find("extends") != nullptr) return overlay;
  if (base.kind == Kind::kMap) return merge(std::move(base), overlay);
  if (base.kind != Kind::kScalar || !is_part(key)) return overlay;
  Value changed = overlay;
  changed.set("extends", base.at, base);
  return changed;
}

/// The kind that a mapping gives; of fabrics, all trees are one.
std::string kind_in(Component component, const Value& part) {
  const Entry* kind = part.find("kind");
  if (kind == nullptr) return "";
  const bool tree =
      component == Component::kFabric && kind->value.text != "dragonfly" && kind->value.text != "torus";
  return tree ? "tree" : kind->value.text;
}

/// Whether an overlay makes another kind of thing of a node or fabric, with keys of its own, so that nothing
/// of the base is left.
bool replaces(Component component, const Value& base, const Value& overlay) {
  if (component != Component::kIntraNode && component != Component::kFabric) return false;
  const std::string kind = kind_in(component, overlay);
  return !kind.empty() && kind != kind_in(component, base);
}

/// Takes out of the base what an overlay gives in another way.
void drop_alternatives(Component component, Value& base, const Value& overlay) {
  if (component != Component::kFabric) return;
  if (overlay.find("radix") != nullptr) {
    for (const char* key : {"nodes_per_leaf", "nodes_per_pod"}) base.erase(key);
  } else if (overlay.find("nodes_per_leaf") != nullptr) {
    for (const char* key : {"radix", "levels"}) base.erase(key);
  }
}

}  // namespace

std::string expected_value(Component component) {
  return "the name of a " + std::string(words_of(component).noun) + " preset, a path or a mapping";
}

Value merge(Value base, const Value& overlay) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < base.entries.size(); ++i) places[base.entries[i].key] = i;
  for (const Entry& entry : overlay.entries) {
    const auto place = places.find(entry.key);
    if (place == places.end()) {
      base.entries.push_back(entry);
      continue;
    }
    Entry& old = base.entries[place->second];
    old.value = merge_entry(entry.key, std::move(old.value), entry.value);
    old.at = entry.at;
  }
  return base;
}

void expand_nic_bandwidth(Value& cluster, const std::string& path, Report& report) {
  const Entry* shorthand = cluster.find("nic_bandwidth");
  if (shorthand == nullptr) return;
  const Entry moved = *shorthand;
  cluster.erase("nic_bandwidth");
  Entry* nic = cluster.find("nic");
  if (nic != nullptr && nic->value.find("bandwidth") != nullptr) {
    report.add(moved.at, join_path(path, "nic_bandwidth"),
               "nic.bandwidth is given as well; remove one of the two");
    return;
  }
  Value bandwidth = make_map(moved.at);
  bandwidth.set("bandwidth", moved.at, moved.value);
  if (nic == nullptr) {
    cluster.set("nic", moved.at, std::move(bandwidth));
  } else if (nic->value.kind == Kind::kMap || nic->value.kind == Kind::kScalar) {
    // Anything else is wrong by itself, and stays to be reported.
    nic->value = merge_entry("nic", std::move(nic->value), bandwidth);
  }
}

std::optional<Value> Resolver::resolve(const Value& value, Component component, const std::string& field) {
  std::optional<Value> resolved = resolve_self(value, component, field, {});
  if (!resolved) unread_.push_back(field);
  if (resolved && component == Component::kCluster) resolve_parts(*resolved, field);
  return resolved;
}

std::optional<Value> Resolver::resolve_self(const Value& value, Component component, const std::string& field,
                                            Chain chain) {
  if (value.kind != Kind::kMap) {
    return load_named(value, component, field, expected_value(component), std::move(chain));
  }
  Value overlay = value;
  if (component == Component::kCluster) expand_nic_bandwidth(overlay, field, report_);
  const Entry* extends = overlay.find("extends");
  if (extends == nullptr) return overlay;
  // Files that extend files add nothing to the path: the place shows which of them is meant.
  const std::string base_field = field.ends_with(".extends") ? field : join_path(field, "extends");
  std::optional<Value> base =
      load_named(extends->value, component, base_field, "the name of a preset or a path", std::move(chain));
  if (!base) return std::nullopt;
  overlay.erase("extends");
  if (replaces(component, *base, overlay)) return overlay;
  drop_alternatives(component, *base, overlay);
  // The name says that this is no longer the preset, unless the input gives it a name of its own.
  Entry* name = base->find("name");
  if (name != nullptr && !overlay.entries.empty()) name->value.text += " (modified)";
  return merge(std::move(*base), overlay);
}

std::optional<Value> Resolver::load_named(const Value& name, Component component, const std::string& field,
                                          const std::string& expects, Chain chain) {
  if (const std::string fault = scalar_fault(name, expects, true); !fault.empty()) {
    report_.add(name.at, field, fault);
    return std::nullopt;
  }
  const std::optional<std::filesystem::path> file = find_file(name, component, field);
  if (!file || !enter(*file, name, field, chain)) return std::nullopt;
  const std::shared_ptr<const Source> source = read_source(*file, next_order_++, report_);
  if (!source) return std::nullopt;
  std::optional<Value> content = parse_mapping(source, report_);
  if (!content) return std::nullopt;
  const bool has_name = content->find("name") != nullptr;
  content = resolve_self(*content, component, field, std::move(chain));
  if (content && !has_name) content->set("name", name.at, make_scalar(file->stem().string(), name.at));
  return content;
}

std::optional<std::filesystem::path> Resolver::find_file(const Value& name, Component component,
                                                         const std::string& field) {
  const ComponentWords& words = words_of(component);
  if (is_path(name.text)) {
    std::filesystem::path file = (name.at.source->folder() / name.text).lexically_normal();
    std::error_code error;
    if (std::filesystem::exists(file, error)) return file;
    report_.add(name.at, field, "no such file: " + clip(file.string(), kLongestPath));
    return std::nullopt;
  }
  const std::filesystem::path folder = presets_root() / words.folder;
  std::filesystem::path file = preset_file(folder, name.text);
  if (!file.empty()) return file;
  report_.add(name.at, field,
              "no " + std::string(words.noun) + " preset is called " + clip(name.text) + "; " +
                  preset_hint(folder, name.text));
  return std::nullopt;
}

/// Adds a file to the chain of those that extend one another; false, after reporting, when that cannot end.
bool Resolver::enter(const std::filesystem::path& file, const Value& name, const std::string& field,
                     Chain& chain) {
  std::error_code error;
  std::filesystem::path unique = std::filesystem::weakly_canonical(file, error);
  if (error) unique = file;
  if (std::find(chain.begin(), chain.end(), unique) != chain.end()) {
    report_.add(name.at, field,
                "extends goes in a circle: " + clip(name.text) + " is made from this file; break the circle");
    return false;
  }
  if (chain.size() >= kMaxChain) {
    report_.add(name.at, field, "extends goes through more than 8 files; flatten the chain");
    return false;
  }
  chain.push_back(std::move(unique));
  return true;
}

void Resolver::resolve_parts(Value& cluster, const std::string& field) {
  for (const ComponentWords& words : kComponents) {
    Entry* part = words.part_key.empty() ? nullptr : cluster.find(words.part_key);
    if (part == nullptr) continue;
    std::optional<Value> resolved = resolve(part->value, words.component, join_path(field, words.part_key));
    if (resolved) part->value = std::move(*resolved);
  }
}

}  // namespace trainsim::config
