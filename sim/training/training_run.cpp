// SPDX-License-Identifier: Apache-2.0
#include "sim/training/training_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/diagnostics.hpp"
#include "sim/base/quantile.hpp"
#include "sim/training/duration_text.hpp"

namespace trainsim::training {

namespace {

/// A run that takes this many times as long as its steps is one that does not end.
constexpr double kEndless = 100.0;
/// Failures that can be simulated in some seconds, over all runs.
constexpr double kMostFailures = 1e8;

std::vector<TimedStage> timed(const std::vector<RunStage>& stages) {
  std::vector<TimedStage> list(stages.size());
  std::transform(stages.begin(), stages.end(), list.begin(), [](const RunStage& each) {
    return TimedStage{each.stage, each.step.step_time};
  });
  return list;
}

/// Sums over all steps.
struct Totals {
  Seconds work = 0;
  Seconds computing = 0;
};

Totals totals_of(const std::vector<RunStage>& stages) {
  Totals totals;
  for (const RunStage& each : stages) {
    const Seconds time = static_cast<double>(each.stage.steps) * each.step.step_time;
    totals.work += time;
    totals.computing += time * each.step.utilization;
  }
  return totals;
}

/// An interval in whole steps, at least one and at most the run.
std::int64_t in_steps(Seconds interval, Seconds step_time, std::int64_t steps) {
  const double count = std::round(interval / step_time);
  return static_cast<std::int64_t>(std::clamp(count, 1.0, static_cast<double>(steps)));
}

/// Daly's interval for the stall, but no shorter than what is left of writing after it: a checkpoint can't
/// begin before the last one is written.
void choose_interval(CheckpointResult& checkpoint, const Hazard& hazard, Seconds step_time,
                     std::int64_t steps) {
  const Checkpoints& timing = checkpoint.timing;
  const std::int64_t best = in_steps(daly_interval(timing.stall, hazard), step_time, steps);
  const std::int64_t possible =
      in_steps(std::ceil((timing.write - timing.stall) / step_time) * step_time, step_time, steps);
  checkpoint.timing.interval = std::max(best, possible);
  checkpoint.chosen = true;
  checkpoint.bound_by_writing = possible > best;
}

CheckpointResult plan_checkpoints(const TrainingSpec& spec, const TrainingRun& run, const Setting& setting,
                                  const std::optional<Hazard>& hazard) {
  const CheckpointSpec& asked = *spec.checkpoint;
  const Seconds step_time = run.stages.back().step.step_time;
  CheckpointResult result;
  result.size = asked.size.value_or(setting.state);
  const std::optional<Seconds> write =
      asked.write_bandwidth ? std::optional(static_cast<double>(result.size) / *asked.write_bandwidth)
                            : std::nullopt;
  result.timing.stall = asked.stall ? *asked.stall : write.value_or(0);
  result.timing.write = std::max(result.timing.stall, write.value_or(0));
  if (asked.interval_steps) {
    result.timing.interval = *asked.interval_steps;
  } else if (asked.interval) {
    result.timing.interval = in_steps(*asked.interval, step_time, run.steps);
  } else {
    choose_interval(result, *hazard, step_time, run.steps);
  }
  result.interval = static_cast<double>(result.timing.interval) * step_time;
  return result;
}

/// What is wrong with a run in which failures leave no time between them.
[[noreturn]] void fail_endless(const Hazard& hazard, const CheckpointResult& checkpoint) {
  throw InputError("trainsim: error: run.failures: with a failure of the job every " +
                   duration_text(hazard.mtbf) + ", a restart of " + duration_text(hazard.restart) + " and " +
                   duration_text(checkpoint.interval + checkpoint.timing.stall) +
                   " from one checkpoint to the next the run would take more than 100 times as long as its "
                   "steps; shorten checkpoint.interval, stall or restart_time, or use fewer GPUs");
}

[[noreturn]] void fail_many(double failures, std::int64_t runs) {
  const auto possible = static_cast<std::int64_t>(std::max(1.0, kMostFailures / failures));
  throw InputError("trainsim: error: run.failures.runs: " + std::to_string(runs) + " runs with about " +
                   std::to_string(static_cast<std::int64_t>(failures)) +
                   " failures each are too many to simulate; at most " + std::to_string(possible) + " here");
}

Spread spread_of(const std::vector<double>& values, double mean) {
  return {quantile(values, 0.1), mean, quantile(values, 0.9)};
}

/// The closed form at another interval.
double goodput_at(std::int64_t interval, const TrainingRun& run, Seconds work, const Hazard& hazard) {
  Checkpoints timing = run.checkpoint->timing;
  timing.interval = interval;
  return work / expected_time(segments(timed(run.stages), timing), hazard);
}

std::optional<ClosedForm> closed_form(const TrainingRun& run, Seconds work, const Hazard& hazard) {
  const Checkpoints& timing = run.checkpoint->timing;
  if (timing.write > timing.stall) return std::nullopt;
  const Seconds daly = daly_interval(timing.stall, hazard);
  const std::int64_t daly_steps = in_steps(daly, run.stages.back().step.step_time, run.steps);
  return ClosedForm{young_interval(timing.stall, hazard), daly,
                    goodput_at(timing.interval, run, work, hazard),
                    goodput_at(daly_steps, run, work, hazard)};
}

/// Simulates the run many times; leaves the mean wall time in it.
FailureResult simulate(const FailureSpec& spec, const Hazard& hazard, const std::vector<Segments>& list,
                       TrainingRun& run, Seconds work) {
  const Seconds write = run.checkpoint->timing.write;
  const Seconds expected = expected_time(list, hazard);
  // A checkpoint that is still being written costs its segment, too.
  const bool endless =
      !std::isfinite(expected) || expected > kEndless * work || write > kEndless * hazard.mtbf;
  if (endless) fail_endless(hazard, *run.checkpoint);
  const double failures = expected / hazard.mtbf;
  if (failures * static_cast<double>(spec.runs) > kMostFailures) fail_many(failures, spec.runs);
  FailureResult result;
  result.hazard = hazard;
  result.runs = spec.runs;
  result.seed = spec.seed;
  std::vector<double> walls(static_cast<std::size_t>(spec.runs));
  std::vector<double> goodputs(walls.size());
  WallTime sum;
  double count = 0;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    const SimulatedRun simulated = simulate_failures(list, write, hazard, spec.seed, i);
    walls[i] = simulated.wall.total();
    goodputs[i] = work / walls[i];
    sum.checkpoints += simulated.wall.checkpoints;
    sum.lost += simulated.wall.lost;
    sum.restarts += simulated.wall.restarts;
    count += static_cast<double>(simulated.failures);
  }
  const auto runs = static_cast<double>(spec.runs);
  run.wall = {work, sum.checkpoints / runs, sum.lost / runs, sum.restarts / runs};
  result.count = count / runs;
  result.wall = spread_of(walls, run.wall.total());
  result.goodput = spread_of(goodputs, work / run.wall.total());
  result.closed_form = closed_form(run, work, hazard);
  return result;
}

void warn(const TrainingSpec& spec, Seconds work, TrainingRun& run) {
  if (!run.checkpoint) return;
  const CheckpointResult& checkpoint = *run.checkpoint;
  if (spec.checkpoint->interval && *spec.checkpoint->interval > work) {
    run.warnings.push_back("run.checkpoint.interval: " + duration_text(*spec.checkpoint->interval) +
                           " are longer than all steps together (" + duration_text(work) +
                           "): nothing is saved before the end");
  }
  if (checkpoint.timing.write - checkpoint.timing.stall > checkpoint.interval) {
    run.warnings.push_back("run.checkpoint: it takes " + duration_text(checkpoint.timing.write) +
                           " to write a checkpoint, longer than to the next one, so that training waits; "
                           "lengthen interval or raise write_bandwidth");
  }
}

}  // namespace

double TrainingRun::days() const {
  return wall.total() / kSecondsPerDay;
}

TrainingRun training_run(const TrainingSpec& spec, const std::vector<RunStage>& stages,
                         const Setting& setting) {
  TrainingRun run;
  run.stages = stages;
  std::vector<BatchStage> batches(stages.size());
  std::transform(stages.begin(), stages.end(), batches.begin(), [](const RunStage& s) { return s.stage; });
  run.steps = total_steps(batches);
  run.samples = total_samples(batches);
  run.tokens = static_cast<double>(run.samples) * static_cast<double>(setting.sequence_length);
  const Totals totals = totals_of(stages);
  run.wall.work = totals.work;
  std::optional<Hazard> hazard;
  if (spec.failures) {
    hazard = Hazard{spec.failures->gpu_mtbf / static_cast<double>(setting.machine.gpus),
                    spec.failures->restart_time};
  }
  if (spec.checkpoint) {
    run.checkpoint = plan_checkpoints(spec, run, setting, hazard);
    const std::vector<Segments> list = segments(timed(stages), run.checkpoint->timing);
    run.wall.checkpoints = failure_free_time(list) - totals.work;
    if (hazard) run.failures = simulate(*spec.failures, *hazard, list, run, totals.work);
  }
  run.gpu_hours = static_cast<double>(setting.machine.gpus) * run.wall.total() / kSecondsPerHour;
  run.goodput = totals.work / run.wall.total();
  if (spec.price) run.cost = Cost{run.gpu_hours * spec.price->per_gpu_hour, *spec.price};
  if (setting.machine.knows_power())
    run.energy = energy_of(run.wall, totals.computing / totals.work, setting.machine, spec.power);
  warn(spec, totals.work, run);
  return run;
}

}  // namespace trainsim::training
