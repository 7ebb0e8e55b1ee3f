// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "sim/cli/command.hpp"

namespace trainsim::cli {

std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_check();
std::unique_ptr<Command> make_list();
std::unique_ptr<Command> make_validate();
std::unique_ptr<Command> make_calibrate();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_topology();
std::unique_ptr<Command> make_memory();
std::unique_ptr<Command> make_sweep();
std::unique_ptr<Command> make_merge();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_completion();
std::unique_ptr<Command> make_manual();
std::unique_ptr<Command> make_search();
std::unique_ptr<Command> make_neighbours();
std::unique_ptr<Command> make_import();
std::unique_ptr<Command> make_export();
std::unique_ptr<Command> make_schema();

}  // namespace trainsim::cli
