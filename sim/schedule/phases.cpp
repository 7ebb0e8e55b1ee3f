// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/phases.hpp"

#include <cassert>

namespace trainsim::schedule {

namespace {

/// The k-th forward of any stage.
Slot forward(const Schedule& schedule, std::int64_t k) {
  const std::int64_t p = schedule.stages;
  const std::int64_t group = p * schedule.chunks;
  const std::int64_t chunk = (k % group) / p;
  const std::int64_t micro_batch = (k / group) * p + k % p;
  return {SlotKind::kForward, static_cast<std::int32_t>(micro_batch), static_cast<std::int32_t>(chunk)};
}

/// The k-th backward of any stage: as the forward, but through the chunks from last to first.
Slot backward(const Schedule& schedule, std::int64_t k) {
  Slot slot = forward(schedule, k);
  slot.kind = SlotKind::kBackward;
  slot.chunk = static_cast<std::int32_t>(schedule.chunks - 1) - slot.chunk;
  return slot;
}

}  // namespace

Schedule phased(std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches, const WarmUp& warm_up) {
  assert(stages >= 1 && chunks >= 1 && micro_batches >= 1);
  assert(chunks == 1 || micro_batches % stages == 0);
  Schedule schedule{stages, chunks, micro_batches, {}};
  const std::int64_t passes = chunks * micro_batches;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t warm = warm_up(stage);
    assert(0 <= warm && warm <= passes);
    std::vector<Slot>& order = schedule.slots.emplace_back();
    order.reserve(static_cast<std::size_t>(2 * passes));
    for (std::int64_t k = 0; k < warm; ++k) order.push_back(forward(schedule, k));
    for (std::int64_t k = warm; k < passes; ++k) {
      order.push_back(forward(schedule, k));
      order.push_back(backward(schedule, k - warm));
    }
    for (std::int64_t k = passes - warm; k < passes; ++k) order.push_back(backward(schedule, k));
  }
  return schedule;
}

}  // namespace trainsim::schedule
