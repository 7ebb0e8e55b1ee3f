// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/training.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <spdlog/spdlog.h>

#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"
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

std::vector<std::int64_t> ramp_sizes(const config::Experiment& experiment) {
  std::vector<std::int64_t> sizes;
  for (const training::BatchStage& stage : stages_of(experiment)) {
    if (stage.batch != experiment.plan.global_batch_size) sizes.push_back(stage.batch);
  }
  return sizes;
}

StepsByBatch simulate_ramp(const config::Experiment& experiment, const std::vector<std::int64_t>& sizes,
                           const VariationOptions& options) {
  StepsByBatch steps;
  run_forked(
      sizes.size(), options.workers,
      [&](std::size_t i) { return to_text(simulate_batch(experiment, sizes[i], options.fold)); },
      [&](std::size_t i, const WorkResult& result) {
        if (!result.done) {
          throw std::runtime_error("a step of " + std::to_string(sizes[i]) +
                                   " sequences failed: " + result.text);
        }
        steps[sizes[i]] = from_text(result.text);
        options.progress(static_cast<double>(steps.size()) / static_cast<double>(sizes.size()));
      });
  return steps;
}

void add_training_run(const config::Experiment& experiment, const StepsByBatch& ramp,
                      report::Summary& summary) {
  if (!experiment.run) return;
  const std::vector<training::BatchStage> stages = stages_of(experiment);
  const double longer = summary.jitter ? summary.jitter->mean / summary.step_time : 1.0;
  std::vector<training::RunStage> list;
  list.reserve(stages.size());
  for (const training::BatchStage& stage : stages) {
    const bool full = stage.batch == experiment.plan.global_batch_size;
    training::StepResult step = full ? step_of(summary.step_time, summary.breakdown) : ramp.at(stage.batch);
    step.step_time *= longer;
    list.push_back({stage, step});
  }
  summary.run = training::training_run(*experiment.run, list, setting_of(experiment));
  const std::vector<std::string>& warnings = summary.run->warnings;
  summary.warnings.insert(summary.warnings.end(), warnings.begin(), warnings.end());
  const std::vector<std::string> notes = report::training_notes(*summary.run);
  summary.notes.insert(summary.notes.end(), notes.begin(), notes.end());
}

}  // namespace trainsim::cli
