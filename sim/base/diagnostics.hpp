// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

namespace trainsim {

/// One thing that is wrong with the input: where, what, and how to cure it.
struct Problem {
  /// Dotted path of the field at fault, such as "plan.tensor_parallel"; empty when the whole file is meant.
  /// `config` turns it into file, line and column.
  std::string field;
  /// Cause and cure in one sentence, without a full stop at the end.
  std::string message;
};

/// A list of problems or warnings, in the order in which they were found.
using Problems = std::vector<Problem>;

/// Thrown once per input with the complete, formatted text of every problem found; `main` prints it and
/// exits with code 2. Never used for the program's own mistakes.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& text) : std::runtime_error(text) {}
};

/// An InputError that has a misspelt or unknown key among its problems: no value of it could be right.
class UnknownKeyError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace trainsim
