// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>

#include "sim/schedule/schedule.hpp"

namespace trainsim::schedule {

namespace {

Slot slot(SlotKind kind, std::int64_t micro_batch) {
  return {kind, static_cast<std::int32_t>(micro_batch), 0};
}

/// The order of a stage that runs `warm` forwards first and lets weight gradients lag `lag` backwards behind.
std::vector<Slot> stage_order(std::int64_t micro_batches, std::int64_t warm, std::int64_t lag) {
  std::vector<Slot> order;
  order.reserve(static_cast<std::size_t>(3 * micro_batches));
  std::int64_t forward = 0;
  std::int64_t weight = 0;
  while (forward < std::min(warm, micro_batches)) order.push_back(slot(SlotKind::kForward, forward++));
  for (std::int64_t backward = 0; backward < micro_batches; ++backward) {
    order.push_back(slot(SlotKind::kBackward, backward));
    if (backward >= lag) order.push_back(slot(SlotKind::kWeight, weight++));
    if (forward < micro_batches) order.push_back(slot(SlotKind::kForward, forward++));
  }
  while (weight < micro_batches) order.push_back(slot(SlotKind::kWeight, weight++));
  return order;
}

/// Each stage further down runs `step` forwards fewer first, and lets weight gradients lag `step` more
/// behind.
Schedule staggered(std::int64_t stages, std::int64_t micro_batches, std::int64_t step) {
  assert(stages >= 1 && micro_batches >= 1);
  Schedule schedule{stages, 1, micro_batches, {}};
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t warm = step * (stages - 1 - stage) + 1;
    schedule.slots.push_back(stage_order(micro_batches, warm, step * stage));
  }
  return schedule;
}

}  // namespace

Schedule zero_bubble_h1(std::int64_t stages, std::int64_t micro_batches) {
  return staggered(stages, micro_batches, 1);
}

Schedule zero_bubble_h2(std::int64_t stages, std::int64_t micro_batches) {
  return staggered(stages, micro_batches, 2);
}

}  // namespace trainsim::schedule
