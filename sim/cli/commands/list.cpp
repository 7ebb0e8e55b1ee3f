// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/config/experiment.hpp"
#include "sim/config/presets.hpp"
#include "sim/report/check_report.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

namespace {

class ListCommand : public Command {
 public:
  void declare(Options& options) override {
    options.add("KIND", kind_, "models, gpus, clusters or configs").required();
    common_.declare(options, {Format::kText, Format::kJson});
  }

  int execute() override {
    const std::vector<std::string> kinds = {"models", "gpus", "clusters", "configs"};
    if (std::find(kinds.begin(), kinds.end(), kind_) == kinds.end()) fail_choice("list", kind_, kinds);
    report::PresetList presets;
    for (config::Preset& preset : config::list_presets(kind_)) {
      presets.emplace_back(std::move(preset.name), std::move(preset.note));
    }
    OutputFile output(common_.output);
    output.write(common_.format == Format::kJson ? report::presets_to_json(presets)
                                                 : report::presets_to_text(presets));
    return kDone;
  }

 private:
  std::string kind_;
};

}  // namespace

std::unique_ptr<Command> make_list() {
  return std::make_unique<ListCommand>();
}

}  // namespace trainsim::cli
