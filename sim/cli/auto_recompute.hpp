// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// Replaces `recompute: auto` by the recomputation that costs least time of those with which the plan fits:
/// none, of attention cores, of norms and activations too, of MLPs, of the first layers of every chunk, or of
/// all. If only borderline ones fit they count; if none does, all is recomputed. Times come from the ideal
/// executor. Returns a sentence on what was chosen and why; empty if nothing had to be.
std::string choose_recomputation(config::Experiment& experiment);

/// Full recomputation of the first layers of each chunk, of as few as give the verdict `wanted` or a better
/// one; nothing if all layers are not enough.
std::optional<plan::Recompute> fewest_layers(const config::Experiment& experiment, report::Verdict wanted);

}  // namespace trainsim::cli
