// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "sim/program/job.hpp"

namespace trainsim::engine {

/// Bytes as the network model counts them: whole.
double whole_bytes(double bytes);
/// Time of `bytes` over a flow's route when nothing else moves.
Seconds lone_flow_time(const program::Job& job, const program::Flow& flow, double bytes);
/// The links of a group's flows.
program::MemberLinks member_links(const program::Job& job, const program::Group& group);
/// Time of a collective of this cost when nothing else moves, latency included.
Seconds lone_collective_time(const program::Job& job, const program::Group& group,
                             const program::CollectiveCost& cost);
/// The same of a private group: each flow has its links to itself, or shares them only with the flows that it
/// stands for.
Seconds private_collective_time(const program::Job& job, const program::Group& group,
                                const program::CollectiveCost& cost);
/// For each group, whether each of its links is crossed by one of its flows and by nothing else.
std::vector<bool> private_groups(const program::Job& job);

}  // namespace trainsim::engine
