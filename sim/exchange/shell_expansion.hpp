// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainsim::exchange {

/// Variables of a shell; arrays have several values.
using ShellVariables = std::map<std::string, std::vector<std::string>>;

/// Expands a word as the shell does, into no, one or several words. Values that only a real run knows become
/// open texts (shell.hpp).
std::vector<std::string> expand_word(const std::string& word, const ShellVariables& variables);

/// The same without splitting at blanks, as in assignments.
std::string expand_text(const std::string& word, const ShellVariables& variables);

/// The value of an arithmetic expression, $((…)): whole numbers, + - * / % and parentheses; nothing for
/// anything else.
std::optional<std::int64_t> shell_arithmetic(const std::string& expression);

}  // namespace trainsim::exchange
