// SPDX-License-Identifier: Apache-2.0

#include "sim/cli/command.hpp"
#include "sim/cli/command_line.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"

namespace trainsim::cli {

namespace {

class ManualCommand : public Command {
 public:
  void declare(Options& options) override { add_output(options, common_.output); }

  int execute() override {
    OutputFile(common_.output).write(manual_page(command_tree(), TRAINSIM_VERSION));
    return kDone;
  }
};

}  // namespace

std::unique_ptr<Command> make_manual() {
  return std::make_unique<ManualCommand>();
}

}  // namespace trainsim::cli
