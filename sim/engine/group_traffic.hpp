// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"
#include "sim/program/traffic.hpp"

namespace trainsim::engine {

/// What each communicator of a job did in a step that was simulated; by TrafficKind, and then by stage.
std::vector<program::GroupTransfers> group_traffic(const program::Job& job,
                                                   const program::Timeline& timeline);

}  // namespace trainsim::engine
