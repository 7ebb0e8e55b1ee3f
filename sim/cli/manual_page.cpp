// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <string>

#include "sim/cli/command_tree.hpp"

namespace trainsim::cli {

namespace {

constexpr const char* kIntroduction =
    R"(.SH DESCRIPTION
.B trainsim
predicts one training step of a large language model on a GPU cluster that need not exist yet.
A configuration in YAML names GPUs, network, model and parallelism plan.
The program replays the step as a discrete\-event simulation and reports step time, pipeline bubble, scaling efficiency, MFU
and peak memory, and where each of them comes from.
.PP
Results go to standard output; progress, warnings and errors go to standard error.
.PP
.I CONFIG
is a file, or the name of a preset that
.B trainsim list configs
shows.
)";

constexpr const char* kEnd =
    R"(.SH EXIT STATUS
.TP
.B 0
Done.
A plan that does not fit in memory is a result, not an error.
.TP
.B 1
Anything else, such as a full disk.
.TP
.B 2
Bad configuration or command line.
.TP
.B 3
.B \-\-require\-fit
was given and the plan does not fit.
.TP
.B 4
An
.B \-\-assert
does not hold.
.SH ENVIRONMENT
.TP
.B TRAINSIM_HOME
The folder that holds
.IR models ,
.I topologies
and
.IR configs ,
instead of the one that was installed with the program.
.SH EXAMPLES
.TP
.B trainsim gpt175b
Simulate a preset.
.TP
.B trainsim run plan.yaml \-\-set plan.micro_batch_size=2 \-\-format json
Change a value for one run, and print JSON.
.TP
.B trainsim gpt175b \-\-require\-fit \-\-assert \(aqbubble_ratio<=0.10\(aq
Accept a plan only if it fits and its bubble is small.
)";

/// Text for roff: what it would read as its own commands or as hyphens is escaped.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\'') {
      result += "\\(aq";
    } else if (c == '`') {
      result += "\\(ga";
    } else {
      result += c;
    }
  }
  // A line that begins with a dot would be a command.
  return result.starts_with('.') ? "\\&" + result : result;
}

/// A sentence out of a help text.
std::string sentence(std::string text) {
  if (text.empty()) return text;
  // The first word may be one that is typed, such as auto in "auto: simulate …".
  const std::size_t word = text.find_first_of(" :,(");
  if (word == std::string::npos || text[word] != ':') {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  if (text.back() != '.') text += '.';
  return escaped(text);
}

std::string option_paragraph(const ArgumentInfo& option) {
  std::string text = ".TP\n";
  std::string names;
  for (const std::string& name : option.names) {
    if (!names.empty()) names += "\\fR, ";
    names += "\\fB" + escaped(name);
  }
  if (!option.value.empty()) names += "\\fR \\fI" + escaped(option.value);
  text.append(names).append("\\fR\n").append(sentence(option.help)).append("\n");
  return text;
}

std::string synopsis(const CommandInfo& command) {
  std::string text = ".B trainsim " + command.name + "\n.RI [ options ]";
  for (const ArgumentInfo& positional : command.positionals) {
    text.append(" \" ")
        .append(escaped(positional.value))
        .append(positional.repeatable ? " .\\|.\\|.\"" : "\"");
  }
  return text + "\n";
}

std::string command_section(const CommandInfo& command) {
  std::string text = ".SS trainsim " + command.name + "\n" + sentence(command.summary) + "\n";
  for (const ArgumentInfo& positional : command.positionals) {
    text.append(".TP\n.I ").append(escaped(positional.value)).append("\n");
    text.append(sentence(positional.help)).append("\n");
  }
  for (const ArgumentInfo& option : command.options) text += option_paragraph(option);
  return text;
}

}  // namespace

std::string manual_page(const CommandTree& tree, const std::string& version) {
  std::string text = ".TH TRAINSIM 1 \"\" \"trainsim " + version + "\" \"User Commands\"\n";
  text += ".SH NAME\ntrainsim \\- simulate a training step of a large model on a GPU cluster\n.SH SYNOPSIS\n";
  text += ".B trainsim\n.RI [ options ] \" CONFIG\"\n";
  for (const CommandInfo& command : tree.commands) text.append(".br\n").append(synopsis(command));
  text += kIntroduction;
  text += ".SH OPTIONS\n";
  for (const ArgumentInfo& option : tree.program.options) text += option_paragraph(option);
  text += ".SH COMMANDS\n";
  for (const CommandInfo& command : tree.commands) text += command_section(command);
  return text + kEnd;
}

}  // namespace trainsim::cli
