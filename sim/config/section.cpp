// SPDX-License-Identifier: Apache-2.0
#include "sim/config/section.hpp"

#include <algorithm>
#include <map>

#include "sim/base/spelling.hpp"

namespace trainsim::config {

namespace {

/// Names that other tools give to our keys and that no edit distance would find.
const std::map<std::string_view, std::string_view> kOtherNames = {
    {"tp", "tensor_parallel"},
    {"tensor_model_parallel_size", "tensor_parallel"},
    {"pp", "pipeline_parallel"},
    {"pipeline_stages", "pipeline_parallel"},
    {"pipeline_model_parallel_size", "pipeline_parallel"},
    {"vpp", "virtual_pipeline"},
    {"dp", "data_parallel"},
    {"cp", "context_parallel"},
    {"context_parallel_size", "context_parallel"},
    {"cp_comm_type", "context_communication"},
    {"ep", "expert_parallel"},
    {"etp", "expert_tensor_parallel"},
    {"expert_model_parallel_size", "expert_parallel"},
    {"moe", "experts"},
    {"num_experts", "count"},
    {"num_local_experts", "count"},
    {"n_routed_experts", "count"},
    {"top_k", "per_token"},
    {"topk", "per_token"},
    {"num_experts_per_tok", "per_token"},
    {"moe_router_topk", "per_token"},
    {"moe_intermediate_size", "intermediate_size"},
    {"mla", "latent_attention"},
    {"multi_latent_attention", "latent_attention"},
    {"first_k_dense_replace", "dense_layers"},
    {"moe_layer_freq", "layer_interval"},
    {"mbs", "micro_batch_size"},
    {"micro_batch", "micro_batch_size"},
    {"gbs", "global_batch_size"},
    {"train_batch_size", "global_batch_size"},
    {"ga", "gradient_accumulation"},
    {"gradient_accumulation_steps", "gradient_accumulation"},
    {"zero", "sharding"},
    {"activation_checkpointing", "recompute"},
    {"seq", "sequence_length"},
    {"seq_length", "sequence_length"},
    {"max_seq_len", "sequence_length"},
    {"layers", "num_layers"},
    {"num_hidden_layers", "num_layers"},
    {"hidden", "hidden_size"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"ffn", "intermediate_size"},
    {"ffn_hidden_size", "intermediate_size"},
    {"vocab", "vocab_size"},
    {"params", "published_parameters"},
    {"world_size", "gpus"},
    {"num_gpus", "gpus"},
};

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The key among `keys` that an unknown one stands for, or "".
std::string meant_key(const std::string& unknown, const std::vector<std::string>& keys) {
  const auto other = kOtherNames.find(unknown);
  const std::string ours(other == kOtherNames.end() ? "" : other->second);
  return contains(keys, ours) ? ours : closest_match(unknown, keys);
}

/// Why a value is no mapping or list.
std::string wrong_kind(const Value& value, const std::string& expects) {
  if (value.kind == Kind::kNull) return "has no value; it needs " + expects;
  return "needs " + expects + ", not " + describe(value);
}

}  // namespace

Section::Section(const Value& map, Position at, std::string path, Reading& reading)
    : map_(&map), at_(std::move(at)), path_(std::move(path)), reading_(&reading) {
  assert(map.kind == Kind::kMap);
  if (recorder() != nullptr) recorder()->section(path_);
}

const Value* Section::raw(std::string_view key) {
  if (!contains(known_, std::string(key))) known_.emplace_back(key);
  const Entry* entry = map_->find(key);
  return entry == nullptr ? nullptr : &entry->value;
}

std::optional<Section> Section::mapping(std::string_view key, bool required, const std::string& expects) {
  if (recorder() != nullptr) recorder()->mapping(field(key));
  const Value* value = raw(key);
  if (required) require(key, expects);
  if (value == nullptr) return std::nullopt;
  // What a name stands for may not have been found; that is reported already.
  if (!all_read({field(key)})) return std::nullopt;
  if (value->kind != Kind::kMap) {
    fail(key, wrong_kind(*value, expects));
    return std::nullopt;
  }
  return Section(*value, map_->find(key)->at, field(key), *reading_);
}

/// The items of a list, or null after reporting when the value is none.
const std::vector<Value>* Section::list_items(std::string_view key) {
  const Value* value = raw(key);
  if (value == nullptr || value->kind == Kind::kList) return value == nullptr ? nullptr : &value->items;
  fail(key, wrong_kind(*value, "a list such as [a, b]"));
  return nullptr;
}

void Section::fail_item(std::string_view key, std::size_t index, const std::string& message) {
  const std::string path = field(key) + "[" + std::to_string(index) + "]";
  reading_->report.add(map_->find(key)->value.items[index].at, path, message);
  reading_->unread.push_back(path);
}

std::vector<Section> Section::mappings(std::string_view key) {
  if (recorder() != nullptr) recorder()->mappings(field(key));
  std::vector<Section> sections;
  const std::vector<Value>* values = list_items(key);
  for (std::size_t i = 0; values != nullptr && i < values->size(); ++i) {
    const Value& item = (*values)[i];
    if (item.kind == Kind::kMap) {
      sections.emplace_back(item, item.at, field(key) + "[" + std::to_string(i) + "]", *reading_);
    } else {
      fail_item(key, i, wrong_kind(item, "a mapping"));
    }
  }
  return sections;
}

void Section::unsupported(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const Entry* entry = map_->find(key);
    if (entry == nullptr) continue;
    reading_->report.add(entry->at, field(key), "not supported by this version; remove this key");
    refused_.push_back(key);
  }
}

void Section::note_default(std::string_view key, const std::string& value) {
  reading_->defaults.emplace_back(field(key), value);
  if (recorder() != nullptr) recorder()->fallback(field(key), value);
}

void Section::fail(std::string_view key, const std::string& message) {
  if (const Entry* entry = map_->find(key)) {
    fail(*entry, message);
  } else {
    reading_->report.add(at_, field(key), message);
    reading_->unread.push_back(field(key));
  }
}

void Section::fail(const Entry& entry, const std::string& message) {
  const bool shown = entry.value.kind != Kind::kNull;
  reading_->report.add(shown ? entry.value.at : entry.at, field(entry.key), message);
  reading_->unread.push_back(field(entry.key));
}

bool Section::require(std::string_view key, const std::string& expects) {
  if (recorder() != nullptr) recorder()->required(field(key));
  if (raw(key) != nullptr) return true;
  missing_.push_back({std::string(key), expects});
  reading_->unread.push_back(field(key));
  return false;
}

bool Section::all_read(const std::vector<std::string>& fields) const {
  return std::none_of(fields.begin(), fields.end(),
                      [&](const std::string& each) { return contains(reading_->unread, each); });
}

/// Reports an unknown key and returns the key among `unused` that it was meant for, or "".
std::string Section::report_unknown(const Entry& entry, const std::vector<std::string>& unused) {
  // A key that is there already may be meant too: then it comes from what the mapping extends, or is
  // overridden.
  const std::string shown = meant_key(entry.key, known_);
  std::string meant = contains(unused, shown) ? shown : "";
  if (!meant.empty()) reading_->unread.push_back(field(meant));
  const std::string hint =
      shown.empty() ? "; legal here: " + join_alternatives(known_) : "; did you mean " + shown + "?";
  reading_->report.add_unknown_key(entry.at, field(entry.key), "unknown key" + hint);
  return meant;
}

void Section::finish() {
  std::vector<std::string> unused = known_;
  std::erase_if(unused, [&](const std::string& key) { return map_->find(key) != nullptr; });
  std::vector<std::string> meant;
  for (const Entry& entry : map_->entries) {
    if (contains(known_, entry.key) || contains(refused_, entry.key)) continue;
    std::string key = report_unknown(entry, unused);
    if (!key.empty()) meant.push_back(std::move(key));
  }
  for (const Missing& missing : missing_) {
    // A misspelt key has been reported as such.
    if (contains(meant, missing.key)) continue;
    reading_->report.add(at_, field(missing.key), "missing; it needs " + missing.expects);
  }
}

}  // namespace trainsim::config
