// SPDX-License-Identifier: Apache-2.0
#include "sim/config/schema.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <utility>

#include "sim/config/parser.hpp"
#include "sim/config/section.hpp"
#include "sim/config/spec_readers.hpp"

namespace trainsim::config {

namespace {

/// Inputs that together lead the readers through all their branches. They need not be legal, because what is
/// wrong is not looked at: a key may stand beside another that rules it out.
constexpr std::array<const char*, 6> kProbes = {
    // Everything left open.
    R"(
model: {num_layers: 4, hidden_size: 64, num_attention_heads: 4, vocab_size: 100, sequence_length: 8}
cluster:
  source: {memory: a note}
  gpu: {source: {memory: a note}}
  gpus_per_node: 8
  intra_node: {kind: nvswitch}
gpus: 8
plan: {}
)",
    // Another model and plan of which nothing is given either, so that derived defaults differ.
    R"(
model: {source: {layers: a note}, num_layers: 6, hidden_size: 128, num_attention_heads: 8, vocab_size: 200,
  sequence_length: 16, activation: swiglu}
cluster:
  gpu: {}
  gpus_per_node: 4
  nics_per_node: 2
  intra_node: {kind: pcie, source: {a: b}, gpus_per_switch: 2, sockets: 2}
  pcie: {source: {a: b}}
  nic: {source: {a: b}}
  fabric: {kind: fat-tree, source: {a: b}}
  collectives: {}
  slow_gpus: [{}]
  faults: [{failed: true}]
gpus: 4
plan:
  tensor_parallel: 2
  virtual_pipeline: 2
  micro_batch_size: 2
  global_batch_size: 8
  recompute: {granularity: full, partial_micro_batches: 1}
  activation_offload: {}
  sharding: {stage: 3, reshard_after_forward: true}
  precision: fp8
  fp8: {}
  lora: {modules: [mlp]}
  placement: [0]
  profile: {}
software: {}
memory: {}
simulation: {steps: 2, jitter: {}}
)",
    R"(
cluster:
  gpu: {}
  gpus_per_node: 4
  nics_per_node: 1
  intra_node: {kind: mesh, cables: [[0, 1]]}
  pcie: {}
  nic: {}
  fabric: {kind: torus, dimensions: [2]}
plan:
  recompute: {granularity: selective, modules: [mlp]}
  sharding: fsdp
software: {framework: deepspeed}
)",
    R"(
cluster:
  gpu: {}
  gpus_per_node: 2
  nics_per_node: 1
  intra_node: {kind: links, links: [{}]}
  fabric: {kind: dragonfly}
plan: {sharding: zero3, profile: [{}]}
)",
    R"(
cluster:
  gpu: {}
  nics_per_node: 1
  intra_node: {kind: nvswitch}
  fabric: {kind: rail-optimized, radix: 64}
plan: {}
)",
    R"(
cluster: {gpu: {}, intra_node: {kind: nvswitch}}
plan: {}
)"};

/// Numbers of list items are no part of a path.
std::string general(const std::string& path) {
  std::string text;
  bool inside = false;
  for (const char letter : path) {
    if (letter == ']') inside = false;
    if (!inside) text += letter;
    if (letter == '[') inside = true;
  }
  return text;
}

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

bool has_keys(const std::vector<SchemaKey>& keys, const std::string& path) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const SchemaKey& key) { return key.path.starts_with(path + "."); });
}

/// Adds an empty mapping for each that nobody has read yet; whether there was one.
bool open_up(Value& root, const std::vector<SchemaKey>& keys) {
  bool any = false;
  for (const SchemaKey& key : keys) {
    const bool closed = key.mapping && !has_keys(keys, key.path) && !key.path.ends_with("source");
    if (!closed || key.path.find('[') != std::string::npos) continue;
    Value* map = &root;
    std::size_t start = 0;
    while (start <= key.path.size()) {
      const std::size_t end = std::min(key.path.find('.', start), key.path.size());
      const std::string step = key.path.substr(start, end - start);
      if (map->find(step) == nullptr || map->find(step)->value.kind != Kind::kMap)
        map->set(step, root.at, make_map(root.at));
      map = &map->find(step)->value;
      start = end + 1;
    }
    any = true;
  }
  return any;
}

}  // namespace

Recorder::Seen& Recorder::seen(const std::string& path) {
  const std::string key = general(path);
  const auto found =
      std::find_if(seen_.begin(), seen_.end(), [&](const Seen& each) { return each.key.path == key; });
  if (found != seen_.end()) return *found;
  seen_.emplace_back();
  seen_.back().key.path = key;
  return seen_.back();
}

void Recorder::section(const std::string& path) {
  const std::string key = general(path);
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const auto& each) { return each.first == key; });
  if (found == sections_.end()) {
    sections_.emplace_back(key, 1);
  } else {
    ++found->second;
  }
}

void Recorder::scalar(const std::string& path, const Form& form) {
  seen(path).key.form = form;
}

void Recorder::mapping(const std::string& path) {
  seen(path).key.mapping = true;
}

void Recorder::mappings(const std::string& path) {
  seen(path).key.mappings = true;
}

void Recorder::list(const std::string& path, const Form& form) {
  Seen& key = seen(path);
  key.key.list = true;
  key.key.form = form;
}

void Recorder::required(const std::string& path) {
  ++seen(path).required;
}

void Recorder::fallback(const std::string& path, const std::string& value) {
  Seen& key = seen(path);
  if (key.key.fallback && *key.key.fallback != value) key.derived = true;
  key.key.fallback = value;
}

std::vector<SchemaKey> Recorder::keys() const {
  std::vector<SchemaKey> keys;
  keys.reserve(seen_.size());
  for (const Seen& each : seen_) {
    SchemaKey key = each.key;
    const std::string parent = parent_of(key.path);
    const auto section = std::find_if(sections_.begin(), sections_.end(),
                                      [&](const auto& read) { return read.first == parent; });
    key.required = section != sections_.end() && each.required == section->second;
    if (each.derived) key.fallback.reset();
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<SchemaKey> schema_keys() {
  Recorder recorder;
  Value last;
  for (const char* probe : kProbes) {
    Report report;
    const auto source = std::make_shared<Source>("probe", "", probe, 0);
    std::optional<Value> root = parse_mapping(source, report);
    assert(root && "a probe must be YAML");
    record_keys(*root, recorder);
    last = std::move(*root);
  }
  // Mappings that no probe has.
  constexpr int deepest = 8;
  for (int i = 0; i < deepest && open_up(last, recorder.keys()); ++i) record_keys(last, recorder);
  return recorder.keys();
}

}  // namespace trainsim::config
