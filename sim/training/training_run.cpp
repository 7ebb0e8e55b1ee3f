// SPDX-License-Identifier: Apache-2.0
#include "sim/training/training_run.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

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
std::int64_t clamped(double count, std::int64_t steps) {
  return static_cast<std::int64_t>(std::clamp(count, 1.0, static_cast<double>(steps)));
}

/// Steps of the full batch, in which intervals are counted.
struct FullSteps {
  Seconds time = 0;
  /// All steps of the run.
  std::int64_t count = 0;

  std::int64_t in(Seconds interval) const { return clamped(std::round(interval / time), count); }
  /// As few as take so long.
  std::int64_t over(Seconds interval) const { return clamped(std::ceil(interval / time), count); }
};

/// What a checkpoint takes. While it is written beside training for w seconds, steps that take f times as
/// long get as far as others do in w / f: the rest is lost to it as if training stood still.
CheckpointResult checkpoint_of(const CheckpointSpec& spec, const Setting& setting, Seconds step_time) {
  CheckpointResult result;
  result.size = spec.size.value_or(setting.state);
  const Seconds written =
      spec.write_bandwidth ? static_cast<double>(result.size) / *spec.write_bandwidth : 0.0;
  const Seconds stall = spec.stall.value_or(written);
  result.slowed = std::max(0.0, written - stall) * (1.0 - 1.0 / setting.writing_slowdown);
  if (spec.through_compute) result.slow_step = step_time * setting.writing_slowdown;
  result.timing.stall = stall + result.slowed;
  result.timing.write = std::max(result.timing.stall, written);
  return result;
}

/// The interval that is asked for. Where it is left open it is the best one, but no shorter than what is left
/// of writing after the stall: a checkpoint can't begin before the last one is written.
void place_checkpoints(const CheckpointSpec& spec, const FullSteps& steps, std::int64_t best,
                       CheckpointResult& checkpoint) {
  Checkpoints& timing = checkpoint.timing;
  if (spec.interval_steps) {
    timing.interval = *spec.interval_steps;
  } else if (spec.interval) {
    timing.interval = steps.in(*spec.interval);
  } else {
    const std::int64_t possible = steps.over(timing.write - timing.stall);
    timing.interval = std::max(best, possible);
    checkpoint.chosen = true;
    checkpoint.bound_by_writing = possible > best;
  }
  checkpoint.interval = static_cast<double>(timing.interval) * steps.time;
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

/// Mean wall time with failures. Throws InputError for a run that does not end.
Seconds mean_time(const std::vector<Segments>& list, const CheckpointResult& checkpoint, Seconds work,
                  const Hazard& hazard) {
  const Seconds expected = expected_time(list, hazard);
  // A checkpoint that is still being written costs its segment, too.
  const bool endless = !std::isfinite(expected) || expected > kEndless * work ||
                       checkpoint.timing.write > kEndless * hazard.mtbf;
  if (endless) fail_endless(hazard, checkpoint);
  return expected;
}

/// Simulates the run many times; leaves the mean wall time in it.
FailureResult simulate(const FailureSpec& spec, const Hazard& hazard, const std::vector<Segments>& list,
                       TrainingRun& run) {
  FailureResult result;
  result.hazard = hazard;
  result.runs = spec.runs;
  result.seed = spec.seed;
  std::mt19937_64 random(spec.seed);
  std::vector<double> walls(static_cast<std::size_t>(spec.runs));
  WallTime sum;
  double count = 0;
  for (double& wall : walls) {
    const SimulatedRun simulated = simulate_failures(list, run.checkpoint->timing.write, hazard, random);
    wall = simulated.wall.total();
    sum.checkpoints += simulated.wall.checkpoints;
    sum.lost += simulated.wall.lost;
    sum.restarts += simulated.wall.restarts;
    count += static_cast<double>(simulated.failures);
  }
  const auto runs = static_cast<double>(spec.runs);
  run.wall = {run.wall.work, sum.checkpoints / runs, sum.lost / runs, sum.restarts / runs};
  result.count = count / runs;
  result.wall_p10 = quantile(walls, 0.1);
  result.wall_p90 = quantile(std::move(walls), 0.9);
  return result;
}

/// Puts checkpoints, and failures if there are any, into a run of known steps.
void add_interruptions(const TrainingSpec& spec, const Setting& setting, TrainingRun& run) {
  const FullSteps steps{run.stages.back().step.step_time, run.steps};
  run.checkpoint = checkpoint_of(*spec.checkpoint, setting, steps.time);
  CheckpointResult& checkpoint = *run.checkpoint;
  const Checkpoints& timing = checkpoint.timing;
  const auto cut = [&](std::int64_t interval) {
    return segments(timed(run.stages), {interval, timing.stall, timing.write});
  };
  if (!spec.failures) {
    place_checkpoints(*spec.checkpoint, steps, 1, checkpoint);
    run.wall.checkpoints = failure_free_time(cut(timing.interval)) - run.wall.work;
    return;
  }
  const Hazard hazard{spec.failures->gpu_mtbf / static_cast<double>(setting.machine.gpus),
                      spec.failures->restart_time};
  const Seconds daly = daly_interval(timing.stall, hazard);
  place_checkpoints(*spec.checkpoint, steps, steps.in(daly), checkpoint);
  const std::vector<Segments> list = cut(timing.interval);
  const Seconds work = run.wall.work;
  const Seconds expected = mean_time(list, checkpoint, work, hazard);
  const double failures = expected / hazard.mtbf;
  if (failures * static_cast<double>(spec.failures->runs) > kMostFailures)
    fail_many(failures, spec.failures->runs);
  run.failures = simulate(*spec.failures, hazard, list, run);
  if (timing.write > timing.stall) return;
  run.failures->closed_form = ClosedForm{young_interval(timing.stall, hazard), daly, work / expected,
                                         work / expected_time(cut(steps.in(daly)), hazard)};
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
  if (spec.checkpoint) add_interruptions(spec, setting, run);
  run.gpu_hours = static_cast<double>(setting.machine.gpus) * run.wall.total() / kSecondsPerHour;
  if (spec.price) run.cost = Cost{run.gpu_hours * spec.price->per_gpu_hour, *spec.price};
  if (setting.machine.knows_power())
    run.energy = energy_of(run.wall, totals.computing / totals.work, setting.machine, spec.power);
  warn(spec, totals.work, run);
  return run;
}

}  // namespace trainsim::training
