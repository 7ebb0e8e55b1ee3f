// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace trainsim::sweep {

/// Keys that vary together: row r gives each of them its value.
struct Axis {
  /// Dotted paths, as for --set.
  std::vector<std::string> keys;
  /// By row and key, in YAML's flow style; nothing where a row leaves a key as it is.
  std::vector<std::vector<std::optional<std::string>>> rows;
  /// What stands before a key in messages: "--vary ", "--zip ", or the name of a file with plans.
  std::string origin = "--vary ";
};

/// The axis of one `--vary KEY=VALUES`. Throws InputError when it can't be read, or has a value twice.
Axis vary_axis(const std::string& text);

/// The axis of all `--zip KEY=VALUES`: the first values together, the second, and so on. Throws InputError
/// when lists differ in length.
Axis zip_axis(const std::vector<std::string>& texts);

}  // namespace trainsim::sweep
