// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/training.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

#include <spdlog/spdlog.h>

#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/hardware/background.hpp"
#include "sim/lowering/state.hpp"
#include "sim/report/notes.hpp"

namespace trainsim::cli {

namespace {

using program::Cause;

/// Causes under which a GPU computes.
constexpr std::array<Cause, 4> kComputing = {Cause::kForward, Cause::kBackward, Cause::kRecompute,
                                             Cause::kOptimizer};

training::StepResult step_of(Seconds step_time, const std::array<Seconds, program::kCauses>& by_cause) {
  Seconds computing = 0;
  for (const Cause cause : kComputing) computing += by_cause[static_cast<std::size_t>(cause)];
  return {step_time, computing / step_time};
}

/// Both numbers as text that reads back exactly.
std::string to_text(const training::StepResult& step) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%.17g %.17g", step.step_time, step.utilization);
  return text.data();
}

training::StepResult from_text(const std::string& text) {
  std::size_t end = 0;
  const double step_time = std::stod(text, &end);
  return {step_time, std::stod(text.substr(end))};
}

training::StepResult simulate_batch(config::Experiment experiment, std::int64_t batch, bool fold) {
  experiment.plan.global_batch_size = batch;
  const program::Job job = build_job(experiment, fold);
  spdlog::debug("a step of {} sequences: {} of {} ranks simulated", batch, job.ranks.size(), job.world_size);
  const program::Timeline timeline = run_job(experiment, job, {});
  return step_of(timeline.step_time, report::mean_by_cause(job, timeline));
}

/// Rate at which checkpoints are written through the compute fabric; nothing where they are not.
std::optional<BytesPerSecond> writing_rate(const config::Experiment& experiment) {
  if (!experiment.run || !experiment.run->checkpoint || !experiment.run->checkpoint->through_compute)
    return std::nullopt;
  return experiment.run->checkpoint->write_bandwidth;
}

/// A step of the full batch on what the writing of a checkpoint leaves of the network.
training::StepResult simulate_writing(config::Experiment experiment, BytesPerSecond rate, bool fold) {
  const hardware::BackgroundLoad load =
      hardware::background_of(experiment.cluster, experiment.plan.gpus, rate);
  experiment.cluster = hardware::with_background(experiment.cluster, load);
  return simulate_batch(experiment, experiment.plan.global_batch_size, fold);
}

training::Setting setting_of(const config::Experiment& experiment) {
  const hardware::ClusterSpec& cluster = experiment.cluster;
  const std::int64_t gpus = experiment.plan.gpus;
  training::Setting setting;
  setting.machine.gpus = gpus;
  setting.machine.nodes = cluster.nodes_of(gpus);
  setting.machine.waiting_power = cluster.gpu.static_power;
  setting.machine.computing_power = cluster.gpu.power_limit;
  setting.sequence_length = experiment.model.sequence_length;
  setting.state = lowering::checkpoint_bytes(experiment.model, experiment.plan);
  return setting;
}

}  // namespace

std::vector<training::BatchStage> stages_of(const config::Experiment& experiment) {
  if (!experiment.run) return {};
  return batch_stages(*experiment.run, {experiment.plan.global_batch_size, experiment.model.sequence_length});
}

void add_needs(const config::Experiment& experiment, RunNeeds& needs) {
  for (const training::BatchStage& stage : stages_of(experiment)) {
    if (stage.batch != experiment.plan.global_batch_size) needs.sizes.insert(stage.batch);
  }
  if (const auto rate = writing_rate(experiment)) needs.rates.insert(*rate);
}

RunSteps simulate_run_steps(const config::Experiment& experiment, const RunNeeds& needs,
                            const VariationOptions& options) {
  const std::vector<std::int64_t> sizes(needs.sizes.begin(), needs.sizes.end());
  const std::vector<BytesPerSecond> rates(needs.rates.begin(), needs.rates.end());
  const std::size_t tasks = sizes.size() + rates.size();
  RunSteps steps;
  std::size_t done = 0;
  const auto work = [&](std::size_t i) {
    return to_text(i < sizes.size() ? simulate_batch(experiment, sizes[i], options.fold)
                                    : simulate_writing(experiment, rates[i - sizes.size()], options.fold));
  };
  run_forked(tasks, options.workers, work, [&](std::size_t i, const WorkResult& result) {
    const bool ramp = i < sizes.size();
    if (!result.done) {
      throw std::runtime_error((ramp ? "a step of " + std::to_string(sizes[i]) + " sequences"
                                     : std::string("a step beside the writing of a checkpoint")) +
                               " failed: " + result.text);
    }
    const training::StepResult step = from_text(result.text);
    if (ramp) {
      steps.by_batch[sizes[i]] = step;
    } else {
      steps.writing[rates[i - sizes.size()]] = step.step_time;
    }
    options.progress(static_cast<double>(++done) / static_cast<double>(tasks));
  });
  return steps;
}

void add_training_run(const config::Experiment& experiment, const RunSteps& steps, report::Summary& summary) {
  if (!experiment.run) return;
  const std::vector<training::BatchStage> stages = stages_of(experiment);
  const double longer = summary.jitter ? summary.jitter->mean / summary.step_time : 1.0;
  std::vector<training::RunStage> list;
  list.reserve(stages.size());
  for (const training::BatchStage& stage : stages) {
    const bool full = stage.batch == experiment.plan.global_batch_size;
    training::StepResult step =
        full ? step_of(summary.step_time, summary.breakdown) : steps.by_batch.at(stage.batch);
    step.step_time *= longer;
    list.push_back({stage, step});
  }
  training::Setting setting = setting_of(experiment);
  if (const auto rate = writing_rate(experiment))
    setting.writing_slowdown = std::max(1.0, steps.writing.at(*rate) / summary.step_time);
  summary.run = training::training_run(*experiment.run, list, setting);
  const std::vector<std::string>& warnings = summary.run->warnings;
  summary.warnings.insert(summary.warnings.end(), warnings.begin(), warnings.end());
  const std::vector<std::string> notes = report::training_notes(*summary.run);
  summary.notes.insert(summary.notes.end(), notes.begin(), notes.end());
}

}  // namespace trainsim::cli
