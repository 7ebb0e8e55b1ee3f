// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "sim/hardware/spec.hpp"
#include "sim/program/job.hpp"

namespace trainsim::folding {

/// NCCL's protocols, and a hierarchical one if it is forced, for a group of `size` members on `nodes` nodes.
/// `inside` and `between` are the largest latencies of its routes inside a node and between nodes; they hold
/// for the Simple protocol, and are shortened for the others by what their links save.
std::vector<program::Protocol> protocols_of(const hardware::ClusterSpec& cluster, std::int64_t size,
                                            std::int64_t nodes, Seconds inside, Seconds between);

/// How pairs of members exchange: NCCL sends and receives with its Simple protocol alone. All-to-alls inside
/// a node may be slower than its links are otherwise.
program::Protocol message_protocol(const hardware::ClusterSpec& cluster, program::Pattern pattern,
                                   std::int64_t nodes, Seconds inside, Seconds between);

}  // namespace trainsim::folding
