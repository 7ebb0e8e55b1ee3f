// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/training/batch_stages.hpp"
#include "sim/training/checkpointing.hpp"
#include "sim/training/energy.hpp"
#include "sim/training/failure_simulation.hpp"
#include "sim/training/spec.hpp"

namespace trainsim::training {

/// A simulated step of one batch size.
struct StepResult {
  Seconds step_time = 0;
  /// Share of it in which a GPU computes, mean over ranks.
  double utilization = 0;
};

/// Steps of one batch size as they were simulated.
struct RunStage {
  BatchStage stage;
  StepResult step;
};

/// What a run costs.
struct Cost {
  double amount = 0;
  Price price;
};

/// How a run saves its state.
struct CheckpointResult {
  Bytes size = 0;
  /// The stall includes what steps beside the writing lose.
  Checkpoints timing;
  /// What they lose: the time of the writing less that of as many steps at their usual pace.
  Seconds slowed = 0;
  /// A step of the full batch beside the writing; 0 where it is as long as others.
  Seconds slow_step = 0;
  /// The interval in seconds, at the step time of the full batch.
  Seconds interval = 0;
  /// Whether it was chosen here, and if so whether a shorter one would be better if writing were faster.
  bool chosen = false;
  bool bound_by_writing = false;
};

/// What is known without simulation of checkpoints that training waits for.
struct ClosedForm {
  /// Optimal intervals for this stall.
  Seconds young_interval = 0;
  Seconds daly_interval = 0;
  /// At the interval that was taken, and at Daly's.
  double goodput = 0;
  double goodput_at_daly = 0;
};

/// What failures do to a run.
struct FailureResult {
  /// Of the job.
  Hazard hazard;
  std::int64_t runs = 0;
  std::uint64_t seed = 0;
  /// Mean number over the simulated runs.
  double count = 0;
  /// Wall times that one, and nine, of ten simulated runs stay below.
  Seconds wall_p10 = 0;
  Seconds wall_p90 = 0;
  /// Nothing if writing goes on beside training, for which it does not hold.
  std::optional<ClosedForm> closed_form;
};

/// A whole training run: every number that any output shows.
struct TrainingRun {
  /// In order, the batch growing.
  std::vector<RunStage> stages;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double tokens = 0;
  /// Mean over the simulated runs, if there are failures.
  WallTime wall;
  double gpu_hours = 0;
  std::optional<Cost> cost;
  /// Nothing where the power of the GPU is not known.
  std::optional<Energy> energy;
  std::optional<CheckpointResult> checkpoint;
  std::optional<FailureResult> failures;
  /// Complete sentences about what is probably not meant.
  std::vector<std::string> warnings;

  double days() const { return wall.total() / kSecondsPerDay; }
  /// Useful time over wall time: of the mean run, or of one that takes `wall_time`.
  double goodput() const { return goodput_in(wall.total()); }
  double goodput_in(Seconds wall_time) const { return wall.work / wall_time; }
};

/// What a run is made on and of.
struct Setting {
  Machine machine;
  std::int64_t sequence_length = 1;
  /// Bytes of parameters and optimizer state of the whole model.
  Bytes state = 0;
  /// How many times as long as others a step takes while a checkpoint is written.
  double writing_slowdown = 1;
};

/// Makes a run of simulated steps, in the order of its stages. Throws InputError when failures come so fast
/// that the run would not end, or are too many to be simulated. REQUIRES: a spec that check accepts; stages
/// that batch_stages makes of it.
TrainingRun training_run(const TrainingSpec& spec, const std::vector<RunStage>& stages,
                         const Setting& setting);

}  // namespace trainsim::training
