// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/readers.hpp"
#include "sim/config/report.hpp"
#include "sim/config/schema.hpp"
#include "sim/config/value.hpp"

namespace trainsim::config {

/// What all sections of one load have in common.
struct Reading {
  /// Where problems go.
  Report report;
  /// Values that the input left open: field path and value, in the order of reading.
  std::vector<std::pair<std::string, std::string>> defaults;
  /// Field paths whose value is wrong, missing or misspelt, so that later checks can leave them alone.
  std::vector<std::string> unread;
  /// Who is told what readers ask for; nobody, usually.
  Recorder* recorder = nullptr;
};

/// A strict reader of one mapping. Every getter reports what is wrong and goes on, so that all problems of a
/// file come together; what it returns after a problem is only a placeholder. finish() reports keys nobody
/// asked for.
class Section {
 public:
  /// Reads `map` (a mapping), whose key stands at `at` and whose fields have paths below `path`.
  Section(const Value& map, Position at, std::string path, Reading& reading);

  /// A key that must be there.
  template <class T>
  T required(std::string_view key, const Reader<T>& reader) {
    require(key, reader.expects);
    return optional(key, reader).value_or(T{});
  }

  /// A key that may be left out.
  template <class T>
  std::optional<T> optional(std::string_view key, const Reader<T>& reader) {
    if (recorder() != nullptr) recorder()->scalar(field(key), reader.form);
    const Value* value = raw(key);
    if (value == nullptr) return std::nullopt;
    Parsed<T> parsed = reader.parse(*value);
    if (!parsed.value) fail(key, parsed.error);
    return parsed.value;
  }

  /// A key that stands for `fallback`, written as in a file, when it is left out.
  template <class T>
  T defaulted(std::string_view key, const Reader<T>& reader, const std::string& fallback) {
    if (recorder() != nullptr) recorder()->scalar(field(key), reader.form);
    if (raw(key) != nullptr) return optional(key, reader).value_or(T{});
    note_default(key, fallback);
    const Parsed<T> parsed = reader.parse(make_scalar(fallback, at_));
    assert(parsed.value && "a default must be legal");
    return *parsed.value;
  }

  /// The value of a key as it is, or null; from now on the key is a known one.
  const Value* raw(std::string_view key);
  /// A mapping below a key; nothing when the key is missing (which is reported if it is `required`) or no
  /// mapping. `expects` says in messages what else could stand there.
  std::optional<Section> mapping(std::string_view key, bool required,
                                 const std::string& expects = "a mapping (lines of 'key: value')");
  /// The items of a list below a key, each read by `reader`; empty when the key is missing.
  template <class T>
  std::vector<T> list(std::string_view key, const Reader<T>& reader) {
    if (recorder() != nullptr) recorder()->list(field(key), reader.form);
    std::vector<T> items;
    const std::vector<Value>* values = list_items(key);
    for (std::size_t i = 0; values != nullptr && i < values->size(); ++i) {
      Parsed<T> parsed = reader.parse((*values)[i]);
      if (!parsed.value) fail_item(key, i, parsed.error);
      items.push_back(std::move(parsed.value).value_or(T{}));
    }
    return items;
  }

  /// The mappings in a list below a key; empty when the key is missing.
  std::vector<Section> mappings(std::string_view key);
  /// Keys that exist elsewhere and get an error of their own.
  void unsupported(const std::vector<std::string>& keys);

  /// Reports a missing key, with what it needs, unless it is there; returns whether it is.
  bool require(std::string_view key, const std::string& expects);
  /// Whether none of these field paths had a problem so far.
  bool all_read(const std::vector<std::string>& fields) const;
  /// Records that `key` was left open and what it stands for.
  void note_default(std::string_view key, const std::string& value);
  /// Reports a problem of a key, or of the section when the key is missing.
  void fail(std::string_view key, const std::string& message);
  /// The same for an entry at hand.
  void fail(const Entry& entry, const std::string& message);
  /// Dotted path of a key.
  std::string field(std::string_view key) const { return join_path(path_, key); }
  /// Dotted path of the section.
  const std::string& path() const { return path_; }
  /// Where problems with files that the section names go.
  Report& report() { return reading_->report; }
  /// Reports missing and unknown keys. Call it once, after all getters.
  void finish();

 private:
  /// A required key that is not there.
  struct Missing {
    std::string key;
    std::string expects;
  };
  Recorder* recorder() const { return reading_->recorder; }
  const std::vector<Value>* list_items(std::string_view key);
  void fail_item(std::string_view key, std::size_t index, const std::string& message);
  std::string report_unknown(const Entry& entry, const std::vector<std::string>& unused);

  const Value* map_;
  Position at_;
  std::string path_;
  Reading* reading_;
  std::vector<std::string> known_;
  /// Keys that are there, but not supported.
  std::vector<std::string> refused_;
  std::vector<Missing> missing_;
};

}  // namespace trainsim::config
