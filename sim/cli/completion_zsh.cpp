// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "sim/cli/command_tree.hpp"

namespace trainsim::cli {

namespace {

constexpr const char* kHead = R"zsh(#compdef trainsim
# Completion of trainsim for zsh; written by `trainsim completion zsh`.

# _trainsim__presets KIND: names of presets, and files.
_trainsim__presets() {
  local -a names
  names=(${(f)"$(trainsim list $1 2>/dev/null | while read -r name rest; do print -r -- $name; done)"})
  _alternative "presets:preset:compadd -a names" 'files:file:_files'
}

)zsh";

/// Text inside '…' of an _arguments specification.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

/// ":message:action" of a value.
std::string action(const ArgumentInfo& argument) {
  const Candidates& candidates = argument.candidates;
  std::string text = ":" + quoted(argument.value) + ":";
  if (!candidates.words.empty()) {
    text += '(';
    for (const std::string& word : candidates.words) text.append(word).append(" ");
    text.back() = ')';
  } else if (!candidates.presets.empty()) {
    // A blank in front keeps _arguments from putting words of its own before the kind.
    text.append(" _trainsim__presets ").append(candidates.presets);
  } else if (candidates.files) {
    text += "_files";
  }
  return text;
}

/// Lines of _arguments, one per name of an option.
std::string option_lines(const CommandInfo& command) {
  std::string text;
  for (const ArgumentInfo& option : command.options) {
    for (const std::string& name : option.names) {
      text.append(" \\\n    '").append(option.repeatable ? "*" : "").append(name);
      // Behind a long option the value may follow a '='.
      if (!option.value.empty() && name.starts_with("--")) text += '=';
      text.append("[").append(quoted(option.help)).append("]");
      if (!option.value.empty()) text += action(option);
      text += '\'';
    }
  }
  return text;
}

std::string function_of(const CommandInfo& command) {
  std::string text = "_trainsim_" + command.name + "() {\n  _arguments -s" + option_lines(command);
  for (const ArgumentInfo& positional : command.positionals) {
    text.append(" \\\n    '").append(positional.repeatable ? "*" : "").append(action(positional)).append("'");
  }
  return text + "\n}\n\n";
}

}  // namespace

std::string zsh_completion(const CommandTree& tree) {
  std::string text = kHead;
  for (const CommandInfo& command : tree.commands) text += function_of(command);
  text += "_trainsim() {\n  local -a commands\n  commands=(\n";
  for (const CommandInfo& command : tree.commands) {
    text.append("    '").append(command.name).append(":").append(quoted(command.summary)).append("'\n");
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    if [[ $words[2] == -* ]]; then\n"
      "      _arguments -s" +
      option_lines(tree.program) + option_lines(tree.usual()) +
      "\n"
      "    else\n"
      "      _describe command commands\n"
      "      _trainsim__presets configs\n"
      "    fi\n"
      "    return\n"
      "  fi\n"
      "  if (( $+functions[_trainsim_$words[2]] )); then\n"
      "    local command=$words[2]\n"
      "    shift words\n"
      "    (( CURRENT-- ))\n"
      "    _trainsim_$command\n"
      "  else\n"
      "    # A configuration: `trainsim CONFIG` is short for `trainsim run CONFIG`.\n"
      "    _trainsim_run\n"
      "  fi\n"
      "}\n\n"
      "if [[ $funcstack[1] == _trainsim ]]; then\n"
      "  _trainsim \"$@\"\n"
      "else\n"
      "  compdef _trainsim trainsim\n"
      "fi\n";
  return text;
}

}  // namespace trainsim::cli
