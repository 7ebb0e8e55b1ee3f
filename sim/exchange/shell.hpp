// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace trainsim::exchange {

/// A value that only the shell of a real run would know: a variable that nobody set ("$NNODES"), or what a
/// program prints ("$(hostname)"). Inside texts it stands between these two characters, which no file has.
inline constexpr char kOpenBegin = '\x01';
inline constexpr char kOpenEnd = '\x02';

/// What a script runs, as far as that can be told without running it.
struct ShellScript {
  /// The words of each command, expanded.
  std::vector<std::vector<std::string>> commands;
  /// Variables at the end. Arrays have several values.
  std::map<std::string, std::vector<std::string>> variables;
  /// Texts that the script writes to files (here-documents), expanded.
  std::vector<std::string> documents;
  /// `#SBATCH` lines.
  std::vector<std::string> batch_options;
  /// Variables that the script assigns only in branches of which nobody knows whether they are taken, and the
  /// open variables of the conditions.
  std::map<std::string, std::set<std::string>> hanging;
  /// Sentences about what could not be followed (loops, functions), without full stop.
  std::vector<std::string> notes;
};

/// Follows a shell script, behind those that `script` holds already: comments, quotes, continued lines,
/// variables, ${NAME:-default}, arithmetic, arrays, here-documents, if and case. Commands are collected
/// instead of run; `eval` and `bash -c` are followed. Tests of files hold. `defined` variables keep their
/// value whatever the script assigns. Throws InputError, with `name` and line, for quotes or braces that are
/// never closed.
void follow_script(ShellScript& script, const std::string& text, const std::string& name,
                   const std::map<std::string, std::string>& defined);

/// Names of the variables that a script uses anywhere, positional parameters ("1") among them, and those of
/// its arithmetic. Throws InputError as follow_script() does.
std::set<std::string> used_variables(const std::string& text, const std::string& name);

/// What has to be given from outside before the value of an open variable is known: itself, or what decides
/// the branches that would assign it.
std::set<std::string> inputs_of(const ShellScript& script, const std::string& variable);

/// Whether a text depends on something only a real run would know.
bool is_open(std::string_view text);
/// The text as it was written, with open values as "$NAME".
std::string show_open(const std::string& text);
/// The name of the first open variable in a text, without "$"; "" if it is no variable.
std::string open_variable(const std::string& text);
/// The names of all open variables in a text.
std::set<std::string> open_variables(const std::string& text);

}  // namespace trainsim::exchange
