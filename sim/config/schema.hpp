// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/form.hpp"

namespace trainsim::config {

/// A key of the input, as its readers know it.
struct SchemaKey {
  /// Dotted path, with "[]" behind a list: "cluster.slow_gpus[].gpu".
  std::string path;
  /// What may stand here as a scalar; nothing when only a mapping or a list may.
  std::optional<Form> form;
  /// Whether a mapping may stand here, a list of mappings, or a list of scalars of that form.
  bool mapping = false;
  bool mappings = false;
  bool list = false;
  /// Whether its mapping cannot do without it.
  bool required = false;
  /// What it stands for when it is left out; nothing when that depends on other keys.
  std::optional<std::string> fallback;
};

/// Collects what readers ask for while they read.
class Recorder {
 public:
  /// A mapping is being read.
  void section(const std::string& path);
  /// A key was asked for, as a scalar, a mapping, a list of mappings or a list of scalars.
  void scalar(const std::string& path, const Form& form);
  void mapping(const std::string& path);
  void mappings(const std::string& path);
  void list(const std::string& path, const Form& form);
  /// A key had to be there.
  void required(const std::string& path);
  /// What a key that was left out stood for.
  void fallback(const std::string& path, const std::string& value);

  /// All keys in the order in which they were asked for first.
  std::vector<SchemaKey> keys() const;

 private:
  struct Seen {
    SchemaKey key;
    std::size_t required = 0;
    bool derived = false;
  };
  Seen& seen(const std::string& path);

  std::vector<Seen> seen_;
  std::vector<std::pair<std::string, std::size_t>> sections_;
};

/// Every key that a configuration may have (but `extends`), from the readers themselves: they read inputs
/// that lead them through every branch, and are asked what they looked for.
std::vector<SchemaKey> schema_keys();

}  // namespace trainsim::config
