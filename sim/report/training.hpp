// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/report/json_dump.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// The block of the text output on the whole run; empty without one.
std::string training_block(const Summary& summary);

/// The object `run` of the JSON result.
Json training_json(const training::TrainingRun& run);

/// Names and cells of the CSV columns on the whole run; none without one.
std::vector<std::pair<std::string, std::string>> training_cells(const Summary& summary);

/// A run with all optional parts, for its names.
training::TrainingRun complete_run();

}  // namespace trainsim::report
