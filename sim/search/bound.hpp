// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"

namespace trainsim::search {

/// Micro-batches of the short step from which bounds are worked out: 2, or two per stage if chunks are
/// interleaved (with one per stage, backward would wait for all forwards, which takes more memory); never
/// more than the plan has.
std::int64_t short_step(const plan::ParallelPlan& plan);

/// A lower bound of the step time with `micro_batches` micro-batches, from a step of fewer that ran without
/// contention. Each rank begins its first slot no earlier than it did in the short step, then needs for every
/// micro-batch at least the shortest forward and backward that each of its chunks had, and after its last
/// slot others still need at least as long as they did: the longest of these sums over ranks. It lacks what
/// slots wait for each other, and is the closed form of the bubble where stages are alike.
Seconds step_time_bound(const program::Job& short_job, const program::Timeline& short_run,
                        std::int64_t micro_batches);

}  // namespace trainsim::search
