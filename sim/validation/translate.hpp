// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/config/report.hpp"
#include "sim/config/value.hpp"
#include "sim/validation/row.hpp"

namespace trainsim::validation {

/// Translates what a row says of model, plan and hardware (without keys that have no value) into the
/// configuration language, lays the row's own `config` over it, and fills in `row`: configuration,
/// assumptions and, when something that decides the result is missing or not supported, the reason to skip
/// it. Keys that nobody reads are reported.
void translate(const config::Value& fields, Row& row, config::Report& report);

/// Whether rows of this kind can be compared with a simulation.
bool is_simulated(const std::string& kind);

/// Reads what was measured into `row`, or the reason why nothing can be compared. REQUIRES: translate() ran.
void read_measured(const config::Value& fields, Row& row, config::Report& report);

}  // namespace trainsim::validation
