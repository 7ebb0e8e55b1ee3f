// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/checkpointing.hpp"

#include <cmath>

namespace trainsim::lowering {

using plan::RecomputeGranularity;
using plan::RecomputeMethod;
using schedule::Slot;
using schedule::SlotKind;

Keep kept_of(const plan::Recompute& recompute, std::int64_t index) {
  if (recompute.by_operators()) return Keep::kInput;
  if (recompute.granularity != RecomputeGranularity::kFull) return Keep::kAll;
  if (recompute.method == RecomputeMethod::kBlock)
    return index < recompute.layers ? Keep::kInput : Keep::kAll;
  return index % recompute.layers == 0 ? Keep::kInput : Keep::kNothing;
}

Checkpointing::Checkpointing(const plan::Recompute& recompute, const schedule::Schedule& schedule,
                             std::int64_t stage)
    : recompute_(recompute), micro_batches_(schedule.micro_batches) {
  if (recompute.partial_micro_batches == 0) return;
  partial_.resize(static_cast<std::size_t>(schedule.chunks * schedule.micro_batches));
  const std::int64_t window =
      std::llround(schedule::peak_in_flight(schedule, stage) * static_cast<double>(schedule.chunks));
  std::int64_t passes = 0;
  for (const Slot& slot : schedule.slots[static_cast<std::size_t>(stage)]) {
    if (slot.kind != SlotKind::kForward) continue;
    partial_[static_cast<std::size_t>(slot.chunk * micro_batches_ + slot.micro_batch)] =
        passes++ % window < recompute.partial_micro_batches;
  }
}

bool Checkpointing::partial(const Slot& slot) const {
  return !partial_.empty() &&
         partial_[static_cast<std::size_t>(slot.chunk * micro_batches_ + slot.micro_batch)];
}

Keep Checkpointing::kept(const Slot& slot, std::int64_t index) const {
  if (!partial(slot)) return kept_of(recompute_, index);
  const bool full = recompute_.granularity == RecomputeGranularity::kFull;
  return full && index < recompute_.partial_layers ? Keep::kInput : Keep::kAll;
}

bool Checkpointing::leaves_out(const Slot& slot, std::int64_t index) const {
  const bool selective = recompute_.granularity == RecomputeGranularity::kSelective;
  return selective && partial(slot) && index >= recompute_.partial_layers;
}

}  // namespace trainsim::lowering
