// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/command_tree.hpp"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

namespace trainsim::cli {

namespace {

/// What values stand for, by the name that options give them.
const std::map<std::string, Candidates> kCandidates = {
    {"CONFIG", {{}, "configs", true}},
    {"CLUSTER", {{}, "clusters", true}},
    {"MODEL", {{}, "models", true}},
    {"GPU", {{}, "gpus", true}},
    {"FILE", {{}, "", true}},
    {"FILES", {{}, "", true}},
    {"DIR", {{}, "", true}},
    {"MODE", {{"auto", "off"}, "", false}},
    {"OP", {{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"}, "", false}},
    {"TARGET", {{"megatron"}, "", false}},
    {"KEY", {{"micro_batch_size", "sequence_length"}, "", false}},
};

/// The words of a help text that is, or begins with, nothing but alternatives, such as "text, json or csv:
/// how"; else none.
std::vector<std::string> alternatives_in(const std::string& text) {
  const std::string help = text.substr(0, text.find_first_of(":;"));
  std::vector<std::string> words;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min({help.find(", ", at), help.find(" or ", at), help.size()});
    words.push_back(help.substr(at, end - at));
    if (words.back().find(' ') != std::string::npos) return {};
    at = end + (help.compare(end, 2, ", ") == 0 ? 2 : 4);
  }
  return words.size() > 1 ? words : std::vector<std::string>{};
}

Candidates candidates_of(const ArgumentInfo& argument) {
  if (argument.value == "PRESET") {
    const bool gpu = std::find(argument.names.begin(), argument.names.end(), "--gpu") != argument.names.end();
    return {{}, gpu ? "gpus" : "clusters", false};
  }
  const auto found = kCandidates.find(argument.value);
  return found == kCandidates.end() ? Candidates{alternatives_in(argument.help), "", false} : found->second;
}

ArgumentInfo describe(const CLI::Option& option) {
  ArgumentInfo info;
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  info.help = option.get_description();
  info.required = option.get_required();
  info.repeatable = option.get_items_expected_max() > 1 ||
                    (option.get_items_expected_max() > 0 &&
                     option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll);
  if (info.names.empty()) {
    info.value = option.get_name(true);
  } else if (option.get_items_expected_max() > 0) {
    // What follows a colon are the validators' descriptions.
    info.value = option.get_type_name();
    info.value.resize(std::min(info.value.find(':'), info.value.size()));
  }
  info.candidates = candidates_of(info);
  return info;
}

CommandInfo describe_one(const CLI::App& app) {
  CommandInfo info{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() && option->get_lnames().empty() ? info.positionals : info.options)
        .push_back(describe(*option));
  }
  return info;
}

}  // namespace

const CommandInfo& CommandTree::usual() const {
  return *std::find_if(commands.begin(), commands.end(),
                       [](const CommandInfo& command) { return command.name == "run"; });
}

CommandTree describe_commands(const CLI::App& app) {
  CommandTree tree{describe_one(app), {}};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) tree.commands.push_back(describe_one(*command));
  }
  return tree;
}

}  // namespace trainsim::cli
