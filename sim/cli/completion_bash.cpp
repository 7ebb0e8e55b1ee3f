// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "sim/cli/command_tree.hpp"

namespace trainsim::cli {

namespace {

constexpr const char* kHead = R"bash(# Completion of trainsim for bash; written by `trainsim completion bash`.

# Names of the presets of a kind.
_trainsim_presets() {
  trainsim list "$1" 2>/dev/null | while read -r name _; do echo "$name"; done
}

# _trainsim_offer WORDS PRESETS FILES: what fits to the word at the cursor; PRESETS may be empty, FILES be 0.
_trainsim_offer() {
  local words="$1"
  [[ -n $2 ]] && words+=" $(_trainsim_presets "$2")"
  COMPREPLY+=($(compgen -W "$words" -- "$current"))
  if [[ $3 == 1 ]]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\n'
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}

_trainsim() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"
  COMPREPLY=()
  # --option=value reaches bash as three words.
  [[ $current == = ]] && current=""
  [[ $previous == = ]] && previous="${COMP_WORDS[COMP_CWORD-2]}"
  if [[ $COMP_CWORD == 1 ]]; then
)bash";

std::string words_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::string names_of(const CommandInfo& command) {
  std::string text;
  for (const ArgumentInfo& option : command.options) {
    if (!text.empty()) text += ' ';
    text += words_of(option.names);
  }
  return text;
}

/// A call that offers what a value can be.
std::string offer(const Candidates& candidates) {
  std::string text = "_trainsim_offer '";
  text += words_of(candidates.words);
  text += "' '";
  text += candidates.presets;
  text += candidates.files ? "' 1" : "' 0";
  return text;
}

/// What comes behind the options of a command.
std::string offer_positional(const CommandInfo& command) {
  return command.positionals.empty() ? ":" : offer(command.positionals.front().candidates);
}

std::string branch(const CommandInfo& command, const std::string& pattern) {
  std::string text = "    ";
  text += pattern;
  text += ")\n      case $previous in\n";
  for (const ArgumentInfo& option : command.options) {
    if (option.value.empty()) continue;
    std::string names = words_of(option.names);
    std::replace(names.begin(), names.end(), ' ', '|');
    text.append("        ")
        .append(names)
        .append(") ")
        .append(offer(option.candidates))
        .append("; return ;;\n");
  }
  text += "      esac\n      if [[ $current == -* ]]; then\n        _trainsim_offer '";
  text += names_of(command);
  text += "' '' 0\n      else\n        ";
  text += offer_positional(command);
  text += "\n      fi\n      ;;\n";
  return text;
}

}  // namespace

std::string bash_completion(const CommandTree& tree) {
  std::string commands;
  for (const CommandInfo& command : tree.commands) commands.append(command.name).append(" ");
  std::string text = kHead;
  text.append("    if [[ $current == -* ]]; then\n      _trainsim_offer '")
      .append(names_of(tree.program))
      .append(" ")
      .append(names_of(tree.usual()))
      .append("' '' 0\n    else\n      _trainsim_offer '")
      .append(commands)
      .append("' configs 1\n    fi\n    return\n  fi\n  case $command in\n");
  for (const CommandInfo& command : tree.commands) {
    if (command.name != tree.usual().name) text += branch(command, command.name);
  }
  // Anything else is a configuration: `trainsim CONFIG` is short for `trainsim run CONFIG`.
  text += branch(tree.usual(), "*");
  return text + "  esac\n}\n\ncomplete -F _trainsim trainsim\n";
}

}  // namespace trainsim::cli
