// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_trial.hpp"

#include <algorithm>
#include <sstream>

#include "sim/cli/simulate.hpp"
#include "sim/engine/executor.hpp"
#include "sim/memory/ledger.hpp"
#include "sim/report/writers.hpp"
#include "sim/search/bound.hpp"

namespace trainsim::cli {

ShortTrial try_short_step(const config::Experiment& experiment) {
  config::Experiment few = experiment;
  plan::ParallelPlan& plan = few.plan;
  plan.global_batch_size = search::short_step(plan) * plan.micro_batch_size * plan.data_parallel;
  const program::Job job = build_job(few, true);
  const program::Timeline timeline = engine::make_ideal_executor({})->run(job);
  ShortTrial trial;
  trial.bound = search::step_time_bound(job, timeline, experiment.plan.micro_batches());
  for (const program::Program& program : job.programs)
    trial.peak = std::max(trial.peak, memory::replay(program).peak);
  return trial;
}

RankedTrial try_without_contention(const config::Experiment& experiment) {
  const MemoryEstimate memory = estimate_memory(experiment);
  RankedTrial trial;
  trial.peak = memory.peak;
  trial.reserved = memory.reserved;
  trial.verdict = memory.verdict;
  if (trial.verdict != report::Verdict::kDoesNotFit) trial.step_time = ideal_step_time(experiment);
  return trial;
}

report::PlanResult try_in_full(const config::Experiment& experiment) {
  return try_in_full(experiment, {}).result;
}

FullTrial try_in_full(const config::Experiment& experiment, const std::vector<std::string>& limits) {
  const report::Summary summary = simulate(experiment, true, {});
  const auto broken = std::find_if(limits.begin(), limits.end(), [&](const std::string& limit) {
    return !report::check_assertion(summary, limit).holds;
  });
  return {report::plan_result(summary), broken == limits.end() ? "" : *broken};
}

std::string packed(const report::PlanResult& result) {
  std::ostringstream text;
  text.precision(17);
  text << result.step_time << " " << result.tokens_per_second << " " << result.mfu << " "
       << result.bubble_ratio << " " << result.scaling_efficiency << " " << result.peak_memory << " "
       << result.peak_reserved << " " << result.headroom << " " << static_cast<int>(result.verdict);
  for (const Seconds seconds : result.breakdown) text << " " << seconds;
  return text.str();
}

report::PlanResult unpacked(const std::string& text) {
  std::istringstream in(text);
  report::PlanResult result;
  int verdict = 0;
  in >> result.step_time >> result.tokens_per_second >> result.mfu >> result.bubble_ratio >>
      result.scaling_efficiency >> result.peak_memory >> result.peak_reserved >> result.headroom >> verdict;
  result.verdict = static_cast<report::Verdict>(verdict);
  for (Seconds& seconds : result.breakdown) in >> seconds;
  return result;
}

}  // namespace trainsim::cli
