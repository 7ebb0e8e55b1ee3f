// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/report/comparison.hpp"
#include "sim/report/difference.hpp"
#include "sim/report/json_dump.hpp"

namespace trainsim::report {

/// A difference as JSON (docs/compare.md): parts by name, with their sums and the sentences.
Json difference_json(const Difference& difference);

/// Values of the input that differ, as JSON (docs/compare.md).
Json inputs_json(const Comparison& comparison);

}  // namespace trainsim::report
