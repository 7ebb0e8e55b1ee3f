// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/formatted.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/plan_neighbours.hpp"
#include "sim/cli/progress_bar.hpp"

namespace trainsim::cli {

namespace {

class NeighboursCommand : public Command {
 public:
  void declare(Options& options) override {
    add_config(options, subject_);
    add_jobs(options, workers_, "plans to simulate");
    common_.declare(options, {Format::kText, Format::kJson, Format::kCsv});
  }

  int execute() override {
    OutputFile output(common_.output);
    ProgressBar bar(!common_.quiet);
    const report::NeighbourReport report =
        simulate_neighbours(subject_, processes(workers_), [&bar](double share) { bar.update(share); });
    bar.clear();
    output.write(formatted(report, common_.format));
    return kDone;
  }

 private:
  Subject subject_;
  std::size_t workers_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_neighbours() {
  return std::make_unique<NeighboursCommand>();
}

}  // namespace trainsim::cli
