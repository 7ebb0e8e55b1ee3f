// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"
#include "sim/program/traffic.hpp"

namespace trainsim::engine {

/// How busy links are over the step, in `parts` equal parts of it: the bytes of each collective and message
/// are spread evenly over the time that it took. Links in the order of `names`. REQUIRES: the timeline has
/// spans.
std::vector<program::LinkCurve> link_curves(const program::Job& job, const program::Timeline& timeline,
                                            const std::vector<std::string>& names, std::size_t parts);

}  // namespace trainsim::engine
