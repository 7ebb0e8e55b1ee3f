// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"
#include "sim/training/training_run.hpp"

namespace trainsim::cli {

/// The batch sizes and steps of the run that an experiment asks for; none if it asks for no run.
std::vector<training::BatchStage> stages_of(const config::Experiment& experiment);

/// Simulates a step of every batch size of the run but the full one, which the experiment's own step is of;
/// in the order of the stages, `workers` at a time. `progress` gets a share in [0, 1].
std::vector<training::StepResult> simulate_ramp(const config::Experiment& experiment, std::size_t workers,
                                                const std::function<void(double)>& progress);

/// Makes the run of the ramp's steps and that of the summary, and puts it there with its warnings and notes.
/// With jitter all steps take as much longer as its mean does. Throws InputError as training_run does.
void add_training_run(const config::Experiment& experiment, const std::vector<training::StepResult>& ramp,
                      report::Summary& summary);

}  // namespace trainsim::cli
