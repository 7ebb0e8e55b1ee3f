// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace trainsim::cli {

/// What an argument's value can be completed to. Everything is empty or false where only the user can know
/// it.
struct Candidates {
  /// Fixed words.
  std::vector<std::string> words;
  /// The kind of presets, as `trainsim list` takes it; empty = none.
  std::string presets;
  bool files = false;
};

/// One option, flag or positional argument.
struct ArgumentInfo {
  /// With their dashes, the long one first; empty for a positional argument.
  std::vector<std::string> names;
  /// What stands for the value in texts, such as FILE; empty for a flag.
  std::string value;
  std::string help;
  bool required = false;
  /// Whether it may be given several times (options), or takes several values (positional arguments).
  bool repeatable = false;
  Candidates candidates;
};

/// A command, or the program itself with the options that come before a command.
struct CommandInfo {
  std::string name;
  std::string summary;
  std::vector<ArgumentInfo> options;
  std::vector<ArgumentInfo> positionals;
};

/// Everything that the command line accepts.
struct CommandTree {
  CommandInfo program;
  /// In the order of `trainsim --help`, without hidden ones.
  std::vector<CommandInfo> commands;

  /// The command that is meant when none is given. REQUIRES: there is one named "run".
  [[nodiscard]] const CommandInfo& usual() const;
};

/// Reads a command line's definition, so that what is made of it can't go stale.
CommandTree describe_commands(const CLI::App& app);

/// Scripts that complete the command line: to be sourced by bash, as a function file of zsh, as a file in
/// fish's completions.
std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);
std::string fish_completion(const CommandTree& tree);

/// The manual page trainsim(1) in roff's man macros.
std::string manual_page(const CommandTree& tree, const std::string& version);

}  // namespace trainsim::cli
