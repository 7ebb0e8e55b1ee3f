// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <spdlog/spdlog.h>

#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/config/experiment.hpp"
#include "sim/exchange/megatron.hpp"

namespace trainsim::cli {

namespace {

class ExportCommand : public Command {
 public:
  void declare(Options& options) override {
    add_config(options, subject_);
    options.add("--to", target_, "megatron: a script that runs Megatron-LM by this plan")
        .value("TARGET")
        .required();
    options.add("-o,--output", common_.output, "write the script to FILE instead of standard output").file();
    options.add_flag("-q,--quiet", common_.quiet, "do not say on standard error what has no option");
  }

  int execute() override {
    if (target_ != "megatron") fail_choice("--to", target_, {"megatron"});
    config::Experiment experiment = config::load(subject_.name, subject_.overrides, config::Scope::kStep);
    const std::string chosen = choose_recomputation(experiment);
    OutputFile output(common_.output);
    const exchange::MegatronCommand command = exchange::to_megatron(experiment.model, experiment.plan);
    output.write(exchange::megatron_script(command, experiment.plan, experiment.cluster.gpus_per_node,
                                           experiment.name));
    if (common_.quiet) return kDone;
    if (!chosen.empty()) spdlog::info("recompute: {}", chosen);
    for (const std::string& untold : command.untold) spdlog::warn("not said by the script: {}", untold);
    return kDone;
  }

 private:
  Subject subject_;
  std::string target_;
};

}  // namespace

std::unique_ptr<Command> make_export() {
  return std::make_unique<ExportCommand>();
}

}  // namespace trainsim::cli
