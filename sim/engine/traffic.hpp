// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/program/job.hpp"
#include "sim/program/traffic.hpp"

namespace trainsim::engine {

/// What a group of this kind is for.
program::TrafficKind traffic_kind(program::GroupKind group);
/// The members of a group by kind and stage.
program::Parties parties_of(const program::Job& job, const program::Group& group);
/// Those that messages of a rank are counted for.
program::Parties sender_of(const program::Rank& rank);

/// Counts what the programs of a job send in a step, and over which links. Nothing is simulated; `groups` are
/// left empty.
program::Traffic count_traffic(const program::Job& job);

}  // namespace trainsim::engine
