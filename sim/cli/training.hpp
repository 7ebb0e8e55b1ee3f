// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <set>
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

/// Steps beside the experiment's own that its run is made of.
struct RunNeeds {
  /// Batch sizes but the full one.
  std::set<std::int64_t> sizes;
  /// Rates at which checkpoints are written through the compute fabric, beside steps of the full batch.
  std::set<BytesPerSecond> rates;
};

/// Adds what the run of an experiment needs, if it asks for one.
void add_needs(const config::Experiment& experiment, RunNeeds& needs);

/// These steps, simulated.
struct RunSteps {
  StepsByBatch by_batch;
  /// Step times by the rate of the writing beside them.
  std::map<BytesPerSecond, Seconds> writing;
};

/// Simulates them. Not to be called after SimGrid has run in this process. Throws std::runtime_error when one
/// fails.
RunSteps simulate_run_steps(const config::Experiment& experiment, const RunNeeds& needs,
                            const VariationOptions& options);

/// Makes the run of these steps and that of the summary, and puts it there with its warnings and notes.
/// With jitter all steps take as much longer as its mean does. Throws InputError as training_run does.
/// REQUIRES: `steps` has what add_needs() names.
void add_training_run(const config::Experiment& experiment, const RunSteps& steps, report::Summary& summary);

}  // namespace trainsim::cli
