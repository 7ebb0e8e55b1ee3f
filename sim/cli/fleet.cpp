// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/fleet.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/cli/simulate.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;

/// Largest micro-batch and sequence that are tried.
constexpr std::int64_t kMostMicroBatch = 4096;
constexpr std::int64_t kMostSequence = 16'777'216;
/// Sequence lengths are tried in steps of this.
constexpr std::int64_t kSequenceStep = 1024;
/// Data-parallel ranks up to which a split is tried when GPUs are counted.
constexpr std::int64_t kMostDataParallel = 64;

/// Whether a configuration is legal and fits with changes.
bool fits(const Subject& subject, const Overrides& changes) {
  const std::optional<Experiment> experiment = variant(subject, changes);
  return experiment && estimate_memory(*experiment).fits();
}

/// The largest multiple of `step` that fits, between it and `most`; 0 if none does. Memory grows with it.
template <class Try>
std::int64_t largest(std::int64_t step, std::int64_t most, const Try& fits_at) {
  std::int64_t good = 0;
  std::int64_t bad = step;
  while (bad <= most && fits_at(bad)) good = std::exchange(bad, 2 * bad);
  while (bad - good > step) {
    const std::int64_t middle = (good + bad) / (2 * step) * step;
    (fits_at(middle) ? good : bad) = middle;
  }
  return good;
}

struct Split {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  /// As the plan has it.
  std::int64_t context = 1;
  std::int64_t gpus() const { return tensor * context * pipeline * data; }
};

/// Splits in ascending order of their GPUs; with as many GPUs the one with less tensor and pipeline
/// parallelism comes first.
std::vector<Split> splits(const Experiment& experiment) {
  std::vector<Split> list;
  for (std::int64_t tensor = 1; tensor <= experiment.cluster.gpus_per_node; tensor *= 2) {
    for (std::int64_t pipeline = 1; pipeline <= experiment.model.num_layers; ++pipeline) {
      if (experiment.model.num_layers % pipeline != 0) continue;
      for (std::int64_t data = 1; data <= kMostDataParallel; data *= 2)
        list.push_back({tensor, pipeline, data, experiment.plan.context_parallel});
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Split& a, const Split& b) {
    return std::pair(a.gpus(), a.tensor * a.pipeline) < std::pair(b.gpus(), b.tensor * b.pipeline);
  });
  return list;
}

}  // namespace

report::FleetAnswer largest_that_fits(const Subject& subject, const Experiment& experiment,
                                      const std::string& key) {
  const plan::ParallelPlan& plan = experiment.plan;
  const bool sequence = key == "sequence_length";
  const auto overrides = [&](std::int64_t value) -> Overrides {
    if (sequence) return {assignment("plan.sequence_length", value)};
    return {assignment("plan.micro_batch_size", value),
            assignment("plan.global_batch_size", value * plan.data_parallel * plan.micro_batches())};
  };
  const auto fits_at = [&](std::int64_t value) { return fits(subject, overrides(value)); };
  const std::int64_t value =
      sequence ? largest(kSequenceStep, kMostSequence, fits_at) : largest(1, kMostMicroBatch, fits_at);
  const std::string note = value == 0 ? "none fits"
                           : sequence ? "tokens (in steps of " + std::to_string(kSequenceStep) + ")"
                                      : "per micro-batch, with as many micro-batches per step";
  return {"Largest " + key + " that fits", value, note};
}

report::FleetAnswer fewest_gpus(const Subject& subject, const Experiment& experiment) {
  const plan::ParallelPlan& plan = experiment.plan;
  for (const Split& split : splits(experiment)) {
    const std::int64_t unit = split.data * plan.micro_batch_size;
    const std::int64_t batch = std::max<std::int64_t>(1, plan.global_batch_size / unit) * unit;
    Overrides overrides = {assignment("gpus", split.gpus()),
                           assignment("plan.tensor_parallel", split.tensor),
                           assignment("plan.pipeline_parallel", split.pipeline),
                           "plan.virtual_pipeline=1",
                           "plan.schedule=1f1b",
                           assignment("plan.data_parallel", split.data),
                           assignment("plan.global_batch_size", batch)};
    // A written layout belongs to the pipeline that it was written for.
    if (!plan.pipeline_layout.empty()) overrides.emplace_back("plan.pipeline_layout=[]");
    if (!fits(subject, overrides)) continue;
    const std::string note = "(TP" + std::to_string(split.tensor) + " PP" + std::to_string(split.pipeline) +
                             (split.context > 1 ? " CP" + std::to_string(split.context) : "") + " DP" +
                             std::to_string(split.data) + ", the rest of the plan as it is)";
    return {"Fewest GPUs that it fits on", split.gpus(), note};
  }
  return {"Fewest GPUs that it fits on", 0,
          "no split with at most " + std::to_string(kMostDataParallel) + " data-parallel ranks fits"};
}

}  // namespace trainsim::cli
