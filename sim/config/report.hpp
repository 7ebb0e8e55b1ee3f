// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/config/source.hpp"

namespace trainsim::config {

/// All problems of one load, with their places.
class Report {
 public:
  /// Adds a problem: `field` is the dotted path ("" when none is meant), `message` cause and cure without
  /// full stop.
  void add(Position at, std::string field, std::string message);
  /// Adds the problem of a key that nothing reads.
  void add_unknown_key(Position at, std::string field, std::string message);
  /// Adds all problems of another report.
  void append(const Report& other);
  /// Whether nothing is wrong so far.
  bool empty() const { return findings_.empty(); }
  /// Number of problems.
  std::size_t size() const { return findings_.size(); }
  /// The problems sorted by position, each as "name:line:col: error: field: message", source line and caret;
  /// no newline at the end. Very many problems are cut, with a count of the rest.
  std::string text() const;
  /// Throws InputError with text() unless the report is empty, UnknownKeyError if there is an unknown key.
  void throw_if_any() const;

 private:
  struct Finding {
    Position at;
    std::string field;
    std::string message;
  };
  static std::string format(const Finding& finding);

  std::vector<Finding> findings_;
  bool has_unknown_key_ = false;
};

}  // namespace trainsim::config
