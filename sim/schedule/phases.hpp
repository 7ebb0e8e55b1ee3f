// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

#include "sim/schedule/schedule.hpp"

namespace trainsim::schedule {

/// Number of forwards that a stage runs before its first pair of one forward and one backward.
using WarmUp = std::function<std::int64_t(std::int64_t stage)>;

/// The shape that GPipe, 1F1B and interleaved 1F1B share; they differ in warm-up and chunks only. Each stage
/// runs its warm-up forwards, then a forward and a backward in turns until no forward is left, then the other
/// backwards. Micro-batches go round in groups of p: a group passes one chunk before it passes the next.
/// REQUIRES: 0 <= warm_up(stage) <= m*v, and m % p == 0 when chunks > 1.
Schedule phased(std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches, const WarmUp& warm_up);

}  // namespace trainsim::schedule
