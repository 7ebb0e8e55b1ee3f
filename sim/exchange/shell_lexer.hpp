// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace trainsim::exchange {

/// A piece of a shell script. Words keep their quotes and what is to be expanded.
struct ShellToken {
  enum class Kind { kWord, kOperator, kNewline, kArray, kDocument };
  Kind kind = Kind::kWord;
  /// The word, the operator, the head of an array assignment ("NAME=" or "NAME+="), or the text of a
  /// here-document.
  std::string text;
  /// Items of an array.
  std::vector<std::string> items = {};
  /// Whether a here-document is taken as it is.
  bool literal = false;
  int line = 0;
};

/// Takes a script apart. Throws InputError for quotes or braces that are never closed.
std::vector<ShellToken> shell_tokens(const std::string& text, const std::string& name);

/// The end (behind the closing character) of what starts at `start` with "${", "$(", "`", "'" or a double
/// quote; npos when it is never closed, or nested absurdly deep. `depth` is that of what is around it.
std::size_t end_of_group(const std::string& text, std::size_t start, int depth = 0);

}  // namespace trainsim::exchange
