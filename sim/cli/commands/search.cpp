// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/command_text.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/formatted.hpp"
#include "sim/cli/interruption.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/plan_search.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/report_file.hpp"
#include "sim/report/format.hpp"
#include "sim/report/page/search_page.hpp"

namespace trainsim::cli {

namespace {

using report::Objective;

constexpr std::int64_t kMostPlans = 1000;
constexpr std::int64_t kMostGpus = 1'000'000;

Objective objective_of(const std::string& word) {
  for (const Objective objective : {Objective::kStepTime, Objective::kCost, Objective::kGpus}) {
    if (word == report::to_string(objective)) return objective;
  }
  fail_choice("--objective", word, {"step_time", "cost", "gpus"});
}

class SearchCommand : public Command {
 public:
  void declare(Options& options) override {
    add_config(options, request_.subject);
    options.add("--top", request_.top, "how many plans to find; 10 by default")
        .value("N")
        .within(1, kMostPlans);
    options
        .add_read(
            "--objective", [this](const std::string& word) { request_.objective = objective_of(word); },
            "step_time, cost or gpus: what to make small; step_time by default")
        .value("WORD");
    options
        .add("--price", request_.price, "dollars per GPU-hour, for the cost of a step; by default the run's")
        .value("DOLLARS")
        .within_reals(0, 1e6);
    options
        .add("--limit", request_.limits,
             "only plans for which it holds, as in 'peak_memory_bytes<=6e10'; repeatable")
        .value("NAME OP NUMBER")
        .repeatable();
    options
        .add("--vary", request_.vary,
             "the values of a setting to try, as in micro_batch_size=1,2; repeatable")
        .value("SETTING=VALUES")
        .repeatable();
    options.add("--gpus", request_.gpus, "the numbers of GPUs to try, as in 64,128,256")
        .value("N,…")
        .comma_separated()
        .within(1, kMostGpus);
    options.add_flag("--borderline", request_.borderline,
                     "take plans too that fit by less than memory is known to");
    add_jobs(options, request_.workers, "plans to simulate");
    report_.declare(options, "shows the best plans, what they trade, and what became of the others");
    common_.declare(options, {Format::kText, Format::kJson, Format::kCsv});
  }

  int execute() override {
    request_.workers = processes(request_.workers);
    report_.check_differs(common_.output, "--output");
    OutputFile output(common_.output);
    report_.open();
    ProgressBar bar(!common_.quiet);
    const Interruption interruption;
    const report::SearchReport report =
        search_plans(request_, [&bar](double share, const std::string& done) { bar.update(share, done); });
    bar.clear();
    if (!report.complete && report.plans.empty()) {
      spdlog::error("interrupted before a plan was found; there is no result");
      return kFailure;
    }
    output.write(formatted(report, common_.format));
    if (report_.wanted()) write_page(report);
    if (report.complete) return kDone;
    spdlog::error("interrupted; the result holds what was found until then, and is marked as incomplete");
    return kFailure;
  }

 private:
  void write_page(const report::SearchReport& report) {
    CommandText command("search");
    command.subject(request_.subject).option("--vary", request_.vary).option("--limit", request_.limits);
    command.option("--top", std::to_string(request_.top))
        .option("--objective", report::to_string(request_.objective));
    std::string gpus;
    for (const std::int64_t count : request_.gpus)
      gpus.append(gpus.empty() ? "" : ",").append(std::to_string(count));
    command.option("--gpus", gpus).option("--price", request_.price ? report::number(*request_.price) : "");
    command.flag("--borderline", request_.borderline);
    report_.write(report::to_html(report::SearchPage{report, command.text(), TRAINSIM_VERSION}));
  }

  SearchRequest request_ = with_workers_open();
  ReportFile report_;

  static SearchRequest with_workers_open() {
    SearchRequest request;
    request.workers = 0;
    return request;
  }
};

}  // namespace

std::unique_ptr<Command> make_search() {
  return std::make_unique<SearchCommand>();
}

}  // namespace trainsim::cli
