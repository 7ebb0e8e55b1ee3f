// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "sim/cli/variations.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"
#include "sim/training/training_run.hpp"

namespace trainsim::cli {

/// The batch sizes and steps of the run that an experiment asks for; none if it asks for no run.
std::vector<training::BatchStage> stages_of(const config::Experiment& experiment);

/// Steps by their batch sizes.
using StepsByBatch = std::map<std::int64_t, training::StepResult>;

/// The batch sizes of the run but the full one, which the experiment's own step is of.
std::vector<std::int64_t> ramp_sizes(const config::Experiment& experiment);

/// Simulates a step of each of some batch sizes. Not to be called after SimGrid has run in this process.
/// Throws std::runtime_error when one fails.
StepsByBatch simulate_ramp(const config::Experiment& experiment, const std::vector<std::int64_t>& sizes,
                           const VariationOptions& options);

/// Makes the run of the ramp's steps and that of the summary, and puts it there with its warnings and notes.
/// With jitter all steps take as much longer as its mean does. Throws InputError as training_run does.
/// REQUIRES: `ramp` has a step of each of ramp_sizes().
void add_training_run(const config::Experiment& experiment, const StepsByBatch& ramp,
                      report::Summary& summary);

}  // namespace trainsim::cli
