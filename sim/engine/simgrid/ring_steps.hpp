// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "sim/engine/simgrid/platform.hpp"
#include "sim/program/collective.hpp"
#include "sim/program/job.hpp"

namespace trainsim::engine {

/// Runs a phase of group `index` over its rings step by step, from the calling actor: every member sends each
/// step's part once it has sent the one before and the one before has reached it; what travels takes the
/// step's latency beside its time on the links. Returns the number of messages.
/// REQUIRES: a platform with channels, a phase of rings, and a group whose flows were kept apart.
std::int64_t run_ring_steps(const Platform& platform, const program::Job& job, std::size_t index,
                            const program::Phase& phase);

}  // namespace trainsim::engine
