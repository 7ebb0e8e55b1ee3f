// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/report/json_dump.hpp"
#include "sim/report/search.hpp"

namespace trainsim::report {

/// A plan as JSON (docs/search.md).
Json to_tree(const PlanResult& result);
/// The JSON result of a search.
Json to_tree(const SearchReport& report);

}  // namespace trainsim::report
