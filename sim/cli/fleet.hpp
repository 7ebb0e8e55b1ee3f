// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/cli/variant.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/memory.hpp"

namespace trainsim::cli {

/// The largest micro-batch (`key` micro_batch_size, with as many micro-batches per step) or sequence
/// (sequence_length) with which a configuration fits.
report::FleetAnswer largest_that_fits(const Subject& subject, const config::Experiment& experiment,
                                      const std::string& key);
/// The fewest GPUs on which a split into tensor (within a node), pipeline and data parallelism fits, the rest
/// of the plan as it is.
report::FleetAnswer fewest_gpus(const Subject& subject, const config::Experiment& experiment);

}  // namespace trainsim::cli
