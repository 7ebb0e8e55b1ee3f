// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "sim/cli/command_tree.hpp"

namespace trainsim::cli {

namespace {

constexpr const char* kHead = R"fish(# Completion of trainsim for fish; written by `trainsim completion fish`.

function __trainsim_presets
    trainsim list $argv[1] 2>/dev/null | string match -rg '^\s*(\S+)'
end

function __trainsim_command
    set -l words (commandline -opc)
    if not set -q words[2]
        return 1
    end
    if contains -- $words[2] $__trainsim_commands
        test $words[2] = $argv[1]
    else
        # A configuration: `trainsim CONFIG` is short for `trainsim run CONFIG`.
        test $argv[1] = run
    end
end

complete -c trainsim -f
)fish";

/// Text inside '…'.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return "'" + result + "'";
}

/// The switches that say what a value can be.
std::string value_switches(const Candidates& candidates) {
  std::string words;
  for (const std::string& word : candidates.words) words.append(word).append(" ");
  if (!candidates.presets.empty())
    words.append("(__trainsim_presets ").append(candidates.presets).append(")");
  std::string text = candidates.files ? " -F" : " -f";
  if (!words.empty()) text.append(" -a ").append(quoted(words));
  return text;
}

std::string option_lines(const CommandInfo& command, const std::string& condition) {
  std::string text;
  for (const ArgumentInfo& option : command.options) {
    text.append("complete -c trainsim -n ").append(quoted(condition));
    for (const std::string& name : option.names) {
      const bool is_long = name.starts_with("--");
      text.append(is_long ? " -l " : " -s ").append(name.substr(is_long ? 2 : 1));
    }
    if (!option.value.empty()) text.append(" -r").append(value_switches(option.candidates));
    text.append(" -d ").append(quoted(option.help)).append("\n");
  }
  for (const ArgumentInfo& positional : command.positionals) {
    text.append("complete -c trainsim -n ")
        .append(quoted(condition))
        .append(value_switches(positional.candidates))
        .append("\n");
  }
  return text;
}

}  // namespace

std::string fish_completion(const CommandTree& tree) {
  std::string text = kHead;
  text += "set -g __trainsim_commands";
  for (const CommandInfo& command : tree.commands) text.append(" ").append(command.name);
  text += "\n";
  for (const CommandInfo& command : tree.commands) {
    text.append("complete -c trainsim -n __fish_use_subcommand -a ")
        .append(command.name)
        .append(" -d ")
        .append(quoted(command.summary))
        .append("\n");
  }
  text += option_lines(tree.program, "__fish_use_subcommand");
  text += option_lines(tree.usual(), "__fish_use_subcommand");
  for (const CommandInfo& command : tree.commands) {
    text += option_lines(command, "__trainsim_command " + command.name);
  }
  return text;
}

}  // namespace trainsim::cli
