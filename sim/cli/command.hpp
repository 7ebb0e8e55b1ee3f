// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/cli/command_options.hpp"

namespace trainsim::cli {

/// A command of the program, such as `trainsim check`. It holds what its part of the command line says.
class Command {
 public:
  virtual ~Command() = default;
  /// Adds the command's options to its part of the command line, which fills this object when it is parsed.
  virtual void declare(Options& options) = 0;
  /// Does the work; returns the exit code. Throws InputError for bad input.
  virtual int execute() = 0;

  const CommonOptions& common() const { return common_; }

 protected:
  CommonOptions common_;
};

/// A command as the command line knows it.
struct CommandEntry {
  std::string name;
  /// For --help: half a sentence.
  std::string summary;
  std::function<std::unique_ptr<Command>()> make;
};

/// All commands, in the order in which --help lists them; the first is the one that needs no name.
const std::vector<CommandEntry>& command_table();

}  // namespace trainsim::cli
