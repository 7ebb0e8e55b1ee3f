// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/report/json_dump.hpp"
#include "sim/report/summary.hpp"
#include "sim/sweep/row.hpp"

namespace trainsim::report {

/// "1.022 M", "450.2 MWh" and "173.4 t": GPU-hours, energy and CO2 for people.
std::string gpu_hours_text(double gpu_hours);
std::string energy_text(double kilowatt_hours);
std::string co2_text(double kilograms);

/// The block of the text output on the whole run; empty without one.
std::string training_block(const Summary& summary);

/// The object `run` of the JSON result.
Json training_json(const training::TrainingRun& run);

/// The columns of CSV and of sweeps' rows on the whole run, always the same; empty without one.
std::vector<sweep::Cell> training_cells(const Summary& summary);

/// A run with all optional parts, for its names.
training::TrainingRun complete_run();

}  // namespace trainsim::report
