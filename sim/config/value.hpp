// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/report.hpp"
#include "sim/config/source.hpp"

namespace trainsim::config {

/// What a value is made of. Numbers and booleans are scalars: their readers decide what the text means.
enum class Kind { kNull, kScalar, kMap, kList };

struct Entry;

/// A parsed value with the place it came from. Aliases and merge keys are expanded already.
struct Value {
  Kind kind = Kind::kNull;
  /// Where the value starts; of a mapping in block style, its first key.
  Position at;
  /// Text of a scalar, without quotes.
  std::string text;
  /// Whether the scalar was written in quotes (or as a text block), and so is text and never a number.
  bool quoted = false;
  /// Entries of a mapping in the order of the file; no key occurs twice.
  std::vector<Entry> entries;
  /// Items of a list.
  std::vector<Value> items;

  /// The entry of a mapping, or null.
  const Entry* find(std::string_view key) const;
  Entry* find(std::string_view key);
  /// Sets an entry of a mapping, in place when the key exists and at the end otherwise.
  void set(std::string_view key, const Position& key_at, Value value);
  /// Removes an entry of a mapping if there is one.
  void erase(std::string_view key);
};

/// A key of a mapping with its value.
struct Entry {
  std::string key;
  /// Where the key stands.
  Position at;
  Value value;
};

/// A scalar that is not written in the input, at a place that stands for it.
Value make_scalar(std::string text, const Position& at);

/// An empty mapping.
Value make_map(const Position& at);

/// "a list", "a mapping", "nothing" or the scalar's (clipped) text, for use in messages.
std::string describe(const Value& value);

/// The value in YAML's flow style, on one line.
std::string flow_text(const Value& value);

/// The path of a key inside a mapping: "plan" and "schedule" give "plan.schedule", "" and "plan" give "plan".
std::string join_path(std::string_view path, std::string_view key);

}  // namespace trainsim::config
