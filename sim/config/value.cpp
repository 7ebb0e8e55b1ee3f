// SPDX-License-Identifier: Apache-2.0
#include "sim/config/value.hpp"

#include <algorithm>
#include <utility>

#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

}  // namespace

const Entry* Value::find(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

Entry* Value::find(std::string_view key) {
  return const_cast<Entry*>(std::as_const(*this).find(key));
}

void Value::set(std::string_view key, const Position& key_at, Value value) {
  if (Entry* entry = find(key)) {
    entry->at = key_at;
    entry->value = std::move(value);
  } else {
    entries.push_back({std::string(key), key_at, std::move(value)});
  }
}

void Value::erase(std::string_view key) {
  std::erase_if(entries, [&](const Entry& e) { return e.key == key; });
}

Value make_scalar(std::string text, const Position& at) {
  Value value;
  value.kind = Kind::kScalar;
  value.at = at;
  value.text = std::move(text);
  return value;
}

Value make_map(const Position& at) {
  Value value;
  value.kind = Kind::kMap;
  value.at = at;
  return value;
}

std::string flow_text(const Value& value) {
  std::string text;
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kScalar:
      return value.quoted ? quoted(value.text) : value.text;
    case Kind::kList:
      for (const Value& item : value.items) {
        if (!text.empty()) text += ", ";
        text += flow_text(item);
      }
      return "[" + text + "]";
    case Kind::kMap:
      break;
  }
  for (const Entry& entry : value.entries) {
    if (!text.empty()) text += ", ";
    text += entry.key + ": ";
    text += flow_text(entry.value);
  }
  return "{" + text + "}";
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kMap:
      return "a mapping";
    case Kind::kList:
      return "a list";
    case Kind::kScalar:
      break;
  }
  return value.text.empty() ? "an empty text" : clip(value.text);
}

std::string join_path(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : std::string(path) + "." + std::string(key);
}

}  // namespace trainsim::config
