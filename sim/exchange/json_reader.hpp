// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace trainsim::exchange {

/// An object of JSON with typed access; errors name the key. Keys may be paths: "attn_config.alibi".
class JsonReader {
 public:
  explicit JsonReader(nlohmann::json object) : object_(std::move(object)) {}

  /// The value at a path, or null when there is none or it is JSON's null.
  const nlohmann::json* find(const std::string& path) const;
  /// Whether there is one.
  bool has(const std::string& path) const { return find(path) != nullptr; }
  /// A count; nothing when the key is missing. Throws InputError when it is none.
  std::optional<std::int64_t> count(const std::string& path) const;
  /// A number; the same.
  std::optional<double> number(const std::string& path) const;
  /// true or false; the same.
  std::optional<bool> flag(const std::string& path) const;
  /// A text; the same.
  std::optional<std::string> text(const std::string& path) const;
  /// Whether a value is the text "auto", which the program that runs the job fills in.
  bool is_auto(const std::string& path) const;
  /// The object itself.
  const nlohmann::json& object() const { return object_; }

 private:
  nlohmann::json object_;
};

/// Reads an object; comments are allowed. Throws InputError, without file name, with line and column.
JsonReader parse_json(const std::string& text);

/// A value for messages, cut when it is long.
std::string json_text(const nlohmann::json& value);

}  // namespace trainsim::exchange
