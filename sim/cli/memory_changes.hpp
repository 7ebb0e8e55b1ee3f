// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "sim/cli/variant.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// Changes of a plan that make it fit, cheapest first, of up to three settings if fewer are not enough; if
/// none does, those that come nearest. At most `most`. Each is lowered anew; its time comes from the ideal
/// executor.
std::vector<report::MemoryChange> memory_changes(const Subject& subject, const config::Experiment& experiment,
                                                 std::size_t most);

}  // namespace trainsim::cli
