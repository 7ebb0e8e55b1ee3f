// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/command_text.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/html_report.hpp"
#include "sim/cli/jitter.hpp"
#include "sim/cli/judge.hpp"
#include "sim/cli/memory_changes.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/questions.hpp"
#include "sim/cli/report_file.hpp"
#include "sim/cli/run_assertions.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/trace_file.hpp"
#include "sim/cli/training.hpp"
#include "sim/cli/uncertainty.hpp"
#include "sim/cli/verify_folding.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/notes.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

namespace {

/// Changes that a run's notes name when it does not fit.
constexpr std::size_t kHelpfulChanges = 3;

/// What --fold says.
bool folds(const std::string& mode) {
  if (mode != "auto" && mode != "off") fail_choice("--fold", mode, {"auto", "off"});
  return mode == "auto";
}

report::Uncertainty vary_constants(const Subject& subject, const UncertaintyOptions& how,
                                   const config::Experiment& experiment, const engine::Progress& progress) {
  return relative_uncertainty(subject.name, subject.overrides, experiment, how, progress);
}

/// Relative step times as seconds.
report::Uncertainty scaled(report::Uncertainty uncertainty, Seconds step_time) {
  uncertainty.low *= step_time;
  uncertainty.high *= step_time;
  for (report::ConstantEffect& constant : uncertainty.constants) {
    constant.step_time_low *= step_time;
    constant.step_time_high *= step_time;
  }
  return uncertainty;
}

class RunCommand : public Command {
 public:
  void declare(Options& options) override {
    add_config(options, subject_);
    options
        .add("--assert", assertions_, "exit with 4 unless it holds, as in 'bubble_ratio<=0.10'; repeatable")
        .value("NAME OP NUMBER")
        .repeatable();
    add_require_fit(options, require_fit_);
    options
        .add_read(
            "--fold", [this](const std::string& mode) { fold_ = folds(mode); },
            "auto: simulate one of each group of identical ranks; off: simulate all")
        .value("MODE")
        .fallback("auto");
    add_uncertainty(options, uncertainty_,
                    "vary the constants in their ranges: an interval of the step time, and what it hangs on");
    options
        .add("--trace", trace_,
             "also write what every stream did when to FILE, for Perfetto or chrome://tracing")
        .file();
    questions_.declare(options);
    report_.declare(options, "shows all of it, with pictures");
    options.add_flag("--verify-folding", verify_folding_, "run folded and unfolded, and compare");
    common_.declare(options, {Format::kText, Format::kJson, Format::kCsv});
  }

  int execute() override {
    report_.check_differs(common_.output, "--output");
    report_.check_differs(trace_, "--trace");
    for (const std::string& assertion : assertions_) report::check_assertion_early(assertion);
    config::Experiment experiment = config::load(subject_.name, subject_.overrides);
    check_run_assertions(assertions_, experiment);
    const std::string chosen = choose_recomputation(experiment);
    questions_.load(subject_, experiment, common_.format);
    OutputFile output(common_.output);
    TraceFile trace(trace_, common_.output);
    report_.open();
    // The text on a terminal repeats them at its end.
    if (common_.format != Format::kText || !common_.output.empty()) {
      for (const std::string& warning : experiment.warnings) spdlog::warn("{}", warning);
    }
    spdlog::debug("{}: {} GPUs, {} micro-batches", experiment.name, experiment.plan.gpus,
                  experiment.plan.micro_batches());
    std::optional<FoldingCheck> folding_check;
    if (verify_folding_) folding_check.emplace(experiment);
    ProgressBar bar(!common_.quiet);
    const engine::Progress progress = [&bar](double share) { bar.update(share); };
    std::optional<report::Uncertainty> uncertainty;
    if (uncertainty_.wanted)
      uncertainty = vary_constants(
          subject_, {uncertainty_.samples, uncertainty_.seed, available_processors()}, experiment, progress);
    // Before the run itself, because SimGrid can't start again in the processes that are forked after it.
    std::optional<report::JitterResult> jitter;
    if (experiment.jitter.steps > 0) jitter = simulate_steps(experiment, available_processors(), progress);
    const VariationOptions how{fold_, available_processors(), progress};
    RunNeeds needs;
    add_needs(experiment, needs);
    const RunSteps steps = simulate_run_steps(experiment, needs, how);
    questions_.answer(subject_, experiment, how);
    Recording recording;
    const bool record = trace.wanted() || report_.wanted();
    report::Summary summary = simulate(experiment, fold_, progress, ReplayAllocator::kForFullestRank,
                                       record ? &recording : nullptr);
    // For people only: scripts that try many plans would pay for it at each that does not fit.
    if (!summary.fits && common_.format == Format::kText) {
      summary.changes = memory_changes(subject_, experiment, kHelpfulChanges);
      summary.notes = report::explain(summary);
    }
    bar.clear();
    if (!chosen.empty()) summary.notes.push_back("Recomputation: " + chosen);
    summary.jitter = jitter;
    add_training_run(experiment, steps, summary);
    summary.sensitivity = questions_.sensitivity();
    summary.placement = questions_.placement();
    if (uncertainty) summary.uncertainty = scaled(std::move(*uncertainty), summary.step_time);
    if (folding_check) summary.notes.push_back(folding_check->compare(summary));
    const int code = judge(summary, assertions_, require_fit_);
    // The result first: it is there even if the page can't be written.
    output.write(questions_.formatted(summary, subject_, experiment, common_));
    trace.write(summary, recording);
    if (report_.wanted()) {
      report_.write(html_report(subject_, experiment, summary, recording,
                                {command(), questions_.what_ifs(summary, subject_, experiment)}, progress));
      bar.clear();
    }
    return code;
  }

 private:
  /// The command line that makes the same page again.
  std::string command() const {
    CommandText text("run");
    text.subject(subject_).option("--fold", fold_ ? "" : "off").flag("--verify-folding", verify_folding_);
    add_to(text, uncertainty_);
    questions_.add_to(text);
    return text.text();
  }

  Subject subject_;
  std::vector<std::string> assertions_;
  ReportFile report_;
  bool require_fit_ = false;
  bool fold_ = true;
  bool verify_folding_ = false;
  /// Where a trace goes; empty = none.
  std::string trace_;
  Questions questions_;
  UncertaintyChoice uncertainty_;
};

}  // namespace

std::unique_ptr<Command> make_run() {
  return std::make_unique<RunCommand>();
}

}  // namespace trainsim::cli
