// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/cli/variations.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// Simulates the other orders of ranks, and the other nodes that the job could take, as far as the rules of
/// plans allow them. Not to be called after SimGrid has run in this process. Throws std::runtime_error when
/// one fails.
report::Placement try_placements(const Subject& subject, const config::Experiment& base,
                                 const VariationOptions& options);

}  // namespace trainsim::cli
