// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/command_line.hpp"

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "sim/base/diagnostics.hpp"

namespace trainsim::cli {

namespace {

constexpr const char* kFooter =
    "\nExit codes: 0 done; 2 bad input or command line; 3 does not fit (--require-fit); 4 an --assert does "
    "not hold;\n"
    "1 anything else. `trainsim CONFIG` is short for `trainsim run CONFIG`.\n";

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  names.reserve(command_table().size());
  for (const CommandEntry& entry : command_table()) names.push_back(entry.name);
  return names;
}

/// Names the first argument that nothing takes.
std::string unexpected(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining(true);
  if (left.empty()) return "there are more arguments than expected";
  const bool option = left.front().starts_with("-");
  return "'" + left.front() + "' is " + (option ? "not an option of this command" : "one argument too many");
}

/// The arguments, last first, as CLI11 wants them; a command is put before a configuration without one.
std::vector<std::string> with_command(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return arguments;
  const std::string& first = arguments.front();
  if (!contains(command_names(), first) && !contains({"-h", "--help", "--version"}, first))
    arguments.insert(arguments.begin(), command_names().front());
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

[[noreturn]] void fail(const std::string& message) {
  throw InputError("trainsim: error: " + message + "; see `trainsim --help`");
}

/// Parses; false when all that was asked for has been printed.
bool parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(with_command(argc, argv));
    return true;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::CallForVersion&) {
    std::cout << "trainsim " TRAINSIM_VERSION "\n";
    return false;
  } catch (const CLI::ExtrasError&) {
    fail(unexpected(app));
  } catch (const CLI::ParseError& error) {
    if (argc < 2) {
      throw InputError(
          "trainsim: error: no configuration given; try `trainsim configs/gpt175b.yaml`, `trainsim "
          "list configs` or `trainsim --help`");
    }
    fail(error.what());
  }
}

using Commands = std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>>;

/// Makes `app` the command line; its options write into the commands.
Commands define(CLI::App& app) {
  app.name("trainsim");
  app.description(
      "trainsim predicts one training step of a large model on a GPU cluster: step time, bubble ratio, "
      "scaling efficiency, MFU and peak memory, with the reasons.");
  app.footer(kFooter);
  app.set_version_flag("--version", "trainsim " TRAINSIM_VERSION);
  app.require_subcommand(1);
  Commands commands;
  commands.reserve(command_table().size());
  for (const CommandEntry& entry : command_table()) {
    commands.emplace_back(app.add_subcommand(entry.name, entry.summary), entry.make());
    Options options(*commands.back().first);
    commands.back().second->declare(options);
  }
  return commands;
}

}  // namespace

CommandTree command_tree() {
  CLI::App app;
  const Commands commands = define(app);
  return describe_commands(app);
}

std::unique_ptr<Command> parse_command_line(int argc, char** argv) {
  CLI::App app;
  Commands commands = define(app);
  if (!parse(app, argc, argv)) return nullptr;
  const auto given = std::find_if(commands.begin(), commands.end(),
                                  [](const auto& command) { return command.first->parsed(); });
  return std::move(given->second);
}

}  // namespace trainsim::cli
