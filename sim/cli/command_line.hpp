// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "sim/cli/command.hpp"
#include "sim/cli/command_tree.hpp"

namespace trainsim::cli {

/// Parses the command line. Returns nothing when there is nothing left to do (--help, --version): the text
/// has been printed. Throws InputError when it can't be understood.
std::unique_ptr<Command> parse_command_line(int argc, char** argv);

/// All commands and options, as text.
CommandTree command_tree();

}  // namespace trainsim::cli
