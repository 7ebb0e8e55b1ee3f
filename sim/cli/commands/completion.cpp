// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/command_line.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"

namespace trainsim::cli {

namespace {

const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

class CompletionCommand : public Command {
 public:
  void declare(Options& options) override {
    options.add("SHELL", shell_, join_alternatives(kShells)).required();
    add_output(options, common_.output);
  }

  int execute() override {
    const std::map<std::string, std::string (*)(const CommandTree&)> writers = {
        {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};
    const auto writer = writers.find(shell_);
    if (writer == writers.end()) fail_choice("completion", shell_, kShells);
    OutputFile(common_.output).write(writer->second(command_tree()));
    return kDone;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion() {
  return std::make_unique<CompletionCommand>();
}

}  // namespace trainsim::cli
