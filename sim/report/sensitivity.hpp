// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/report/json_dump.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// Rows by their gain, the largest first; by name where that is the same.
void sort_by_gain(Sensitivity& sensitivity);

/// What the step is bound by, in sentences: hardware, then operations. REQUIRES: summary.sensitivity.
std::vector<std::string> bound_by(const Summary& summary);

/// The table and the sentences; nothing when it was not asked for.
std::string sensitivity_text(const Summary& summary);
/// An object (docs/compare.md), or null.
Json sensitivity_json(const Summary& summary);
/// One row per resource. REQUIRES: summary.sensitivity.
std::string sensitivity_csv(const Summary& summary);

}  // namespace trainsim::report
