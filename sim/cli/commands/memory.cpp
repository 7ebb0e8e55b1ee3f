// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/judge.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/report/memory.hpp"

namespace trainsim::cli {

namespace {

class MemoryCommand : public Command {
 public:
  void declare(Options& options) override {
    add_config(options, request_.subject);
    options.add("--rank", request_.rank, "the rank to look at; by default the one that needs most")
        .value("R")
        .within(0, 999'999'999);
    options
        .add("--largest", request_.largest,
             "also find the largest micro_batch_size or sequence_length that fits")
        .value("KEY");
    options.add_flag("--fewest-gpus", request_.fewest_gpus,
                     "also find the fewest GPUs on which some split of the model fits");
    add_require_fit(options, require_fit_);
    common_.declare(options, {Format::kText, Format::kJson});
  }

  int execute() override {
    const std::vector<std::string> sizes = {"micro_batch_size", "sequence_length"};
    if (!request_.largest.empty() && std::find(sizes.begin(), sizes.end(), request_.largest) == sizes.end())
      fail_choice("--largest", request_.largest, sizes);
    OutputFile output(common_.output);
    ProgressBar bar(!common_.quiet);
    const report::MemoryReport report =
        describe_memory(request_, [&bar](double share) { bar.update(share); });
    bar.clear();
    output.write(common_.format == Format::kJson ? report::to_json(report) : report::to_text(report));
    return judge(report.summary, {}, require_fit_);
  }

 private:
  MemoryRequest request_;
  bool require_fit_ = false;
};

}  // namespace

std::unique_ptr<Command> make_memory() {
  return std::make_unique<MemoryCommand>();
}

}  // namespace trainsim::cli
