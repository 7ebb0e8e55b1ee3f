// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/formatted.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/plan_search.hpp"
#include "sim/cli/progress_bar.hpp"

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
  void declare(CLI::App& app) override {
    add_config(app, request_.subject);
    app.add_option("--top", request_.top, "how many plans to find; 10 by default")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, kMostPlans));
    app.add_option_function<std::string>(
           "--objective", [this](const std::string& word) { request_.objective = objective_of(word); },
           "what to make small: step_time (the default), cost or gpus")
        ->type_name("WORD");
    app.add_option("--price", request_.price, "dollars per GPU-hour, for the cost of a step")
        ->type_name("DOLLARS")
        ->check(CLI::Range(0.0, 1e6));
    app.add_option("--limit", request_.limits,
                   "only plans for which it holds, as in 'peak_memory_bytes<=6e10'; repeatable")
        ->type_name("NAME OP NUMBER")
        ->expected(1)
        ->take_all();
    app.add_option("--vary", request_.vary,
                   "the values of a setting to try, as in micro_batch_size=1,2; repeatable")
        ->type_name("SETTING=VALUES")
        ->expected(1)
        ->take_all();
    app.add_option("--gpus", request_.gpus, "the numbers of GPUs to try, as in 64,128,256")
        ->type_name("N,…")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(std::int64_t{1}, kMostGpus));
    app.add_flag("--borderline", request_.borderline,
                 "take plans too that fit by less than memory is known to");
    add_jobs(app, request_.workers, "plans to simulate");
    common_.declare(app, {Format::kText, Format::kJson, Format::kCsv});
  }

  int execute() override {
    request_.workers = processes(request_.workers);
    OutputFile output(common_.output);
    ProgressBar bar(!common_.quiet);
    const InterruptGuard guard;
    const report::SearchReport report =
        search_plans(request_, [&bar](double share, const std::string& done) { bar.update(share, done); });
    bar.clear();
    if (!report.complete && report.plans.empty()) {
      spdlog::error("interrupted before a plan was found; there is no result");
      return kFailure;
    }
    output.write(formatted(report, common_.format));
    if (report.complete) return kDone;
    spdlog::error("interrupted; the result holds what was found until then, and is marked as incomplete");
    return kFailure;
  }

 private:
  SearchRequest request_ = with_workers_open();

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
