// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/report/json_dump.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// What a comparison of placements needs of a run.
PlacementResult placement_result(const Summary& summary);
/// As text, for the way from a worker process, and back.
std::string packed(const PlacementResult& result);
PlacementResult unpacked_placement(const std::string& text);

/// Rows by their step time; as they were where it is the same.
void sort_by_step_time(Placement& placement);
/// Why one placement takes longer or shorter than another: "data communication 0.62 s more; data groups on 16
/// nodes instead of 8; pipeline transfers leave the link of data-parallel rings".
std::string why_placement(const PlacementResult& from, const PlacementResult& to);
/// What the best of the others would give, in a sentence. REQUIRES: summary.placement.
std::string placement_sentence(const Summary& summary);

/// The table and the sentences; nothing when it was not asked for.
std::string placement_text(const Summary& summary);
/// An object (docs/compare.md), or null.
Json placement_json(const Summary& summary);
/// One row per placement, the run's own first. REQUIRES: summary.placement.
std::string placement_csv(const Summary& summary);

}  // namespace trainsim::report
