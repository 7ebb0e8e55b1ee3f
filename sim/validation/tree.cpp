// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/tree.hpp"

#include <algorithm>
#include <utility>

#include "sim/config/quantity.hpp"

namespace trainsim::validation {

using config::Entry;
using config::Kind;
using config::Value;

const Value* find_path(const Value& root, std::string_view path) {
  const Value* value = &root;
  while (value != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const Entry* entry = value->kind == Kind::kMap ? value->find(path.substr(0, dot)) : nullptr;
    value = entry == nullptr ? nullptr : &entry->value;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return value;
}

void set_path(Value& root, std::string_view path, Value value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) {
    const config::Position at = value.at;
    root.set(path, at, std::move(value));
    return;
  }
  const std::string_view head = path.substr(0, dot);
  if (root.find(head) == nullptr) root.set(head, value.at, config::make_map(value.at));
  set_path(root.find(head)->value, path.substr(dot + 1), std::move(value));
}

void drop_nulls(Value& root) {
  std::erase_if(root.entries, [](const Entry& entry) { return entry.value.kind == Kind::kNull; });
  for (Entry& entry : root.entries) drop_nulls(entry.value);
}

std::optional<double> number_at(const Value& root, std::string_view path) {
  const Value* value = find_path(root, path);
  if (value == nullptr || value->kind != Kind::kScalar) return std::nullopt;
  if (const auto number = config::parse_number(value->text).value) return number;
  const auto count = config::parse_count(value->text).value;
  return count ? std::optional<double>(static_cast<double>(*count)) : std::nullopt;
}

std::string text_at(const Value& root, std::string_view path) {
  const Value* value = find_path(root, path);
  return value != nullptr && value->kind == Kind::kScalar ? value->text : "";
}

}  // namespace trainsim::validation
