// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/program/traffic.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// What communicators did, those of different stages together where they did the same: as many calls of as
/// many bytes, which take as long alone. Times are means over all their ranks.
std::vector<program::GroupTransfers> alike_groups(const Summary& summary);
/// "data, stages 1-14", "tensor, all stages"; "data" in a plan of one stage.
std::string parties_text(const program::Parties& parties, const plan::ParallelPlan& plan);
/// What parties send, for sentences: "data-parallel rings", "pipeline transfers".
std::string transfers_words(const std::string& name);
/// "; the slowest link on its way is 'nic 0 -> leaf 0' (23 GB/s)" of what compute waits for most among
/// transfers of a kind; empty when there are none.
std::string limit_text(const Summary& summary, program::TrafficKind kind);
/// Which communicator others delay most, by how much, and on which link they meet; empty when none is
/// delayed.
std::string sharing_text(const Summary& summary);
/// The table "Communication by group"; empty when nothing is sent.
std::string group_table(const Summary& summary);

}  // namespace trainsim::report
