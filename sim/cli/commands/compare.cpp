// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/compare.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "sim/cli/command.hpp"
#include "sim/cli/command_text.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/formatted.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/report_file.hpp"
#include "sim/report/page/compare_page.hpp"

namespace trainsim::cli {

namespace {

class CompareCommand : public Command {
 public:
  void declare(Options& options) override {
    options
        .add(
            "CONFIGS", configs_,
            "two configurations or more; CONFIG@KEY=VALUE,… is one with changes, @KEY=VALUE,… the first with "
            "changes")
        .value("");
    add_overrides(options, overrides_, "override a value of all, as in plan.micro_batch_size=2; repeatable");
    add_uncertainty(options, uncertainty_,
                    "vary the constants in their ranges, for all runs alike: an interval of each difference");
    add_jobs(options, workers_, "runs to simulate");
    report_.declare(options, "shows results side by side, and where time and memory moved");
    common_.declare(options, {Format::kText, Format::kJson, Format::kCsv});
  }

  int execute() override {
    report_.check_differs(common_.output, "--output");
    const std::vector<Variation> variations = load_compared(configs_, overrides_);
    OutputFile output(common_.output);
    report_.open();
    for (const Variation& variation : variations) {
      for (const std::string& warning : variation.experiment.warnings)
        spdlog::warn("{}: {}", variation.label, warning);
    }
    ProgressBar bar(!common_.quiet);
    const VariationOptions options{true, processes(workers_), [&bar](double share) { bar.update(share); }};
    report::Comparison comparison{simulate_variations(variations, options)};
    if (uncertainty_.wanted) add_intervals(variations, options, comparison);
    bar.clear();
    output.write(formatted(comparison, common_.format));
    if (report_.wanted()) write_page(comparison);
    return kDone;
  }

 private:
  void add_intervals(const std::vector<Variation>& variations, const VariationOptions& how,
                     report::Comparison& comparison) const {
    const std::vector<std::vector<double>> times =
        sampled_times(sampled_configs(configs_, variations),
                      {uncertainty_.samples, uncertainty_.seed, how.workers}, how.progress);
    const report::Figures& base = comparison.runs.front().figures;
    for (std::size_t r = 1; r < times.size(); ++r) {
      report::ComparedRun& run = comparison.runs[r];
      run.interval = report::difference_interval(report::difference(base, run.figures).share(), times.front(),
                                                 times[r], uncertainty_.seed);
    }
  }

  void write_page(const report::Comparison& comparison) {
    CommandText command("compare");
    for (const std::string& config : configs_) command.argument(config);
    command.option("--set", overrides_);
    add_to(command, uncertainty_);
    report_.write(report::to_html(report::ComparePage{comparison, command.text(), TRAINSIM_VERSION}));
  }

  std::vector<std::string> configs_;
  Overrides overrides_;
  UncertaintyChoice uncertainty_;
  std::size_t workers_ = 0;
  ReportFile report_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<CompareCommand>();
}

}  // namespace trainsim::cli
