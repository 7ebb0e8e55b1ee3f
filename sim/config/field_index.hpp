// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <unordered_map>

#include "sim/config/value.hpp"

namespace trainsim::config {

/// Where every field of a configuration stands, so that checks which know nothing of files can name a field
/// only.
class FieldIndex {
 public:
  /// Indexes a configuration whose names are replaced by what they stand for.
  explicit FieldIndex(const Value& root);
  /// Whether the input has this field.
  bool has(const std::string& field) const { return places_.contains(field); }
  /// Place of a field's value (of its key, for a mapping), or of the nearest field around it that the input
  /// has.
  Position locate(const std::string& field) const;

 private:
  void add(const Value& value, const std::string& path);

  Position root_;
  std::unordered_map<std::string, Position> places_;
};

}  // namespace trainsim::config
