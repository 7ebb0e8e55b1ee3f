// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/schedule.hpp"

#include <algorithm>
#include <cassert>

namespace trainsim::schedule {

namespace {

/// The same micro-batch's slot of another kind at a place in the model.
StagedSlot slot_at(const Schedule& schedule, SlotKind kind, std::int32_t micro_batch,
                   std::int64_t virtual_stage) {
  const auto chunk = static_cast<std::int32_t>(schedule.chunk_of(virtual_stage));
  return {schedule.stage_of(virtual_stage), {kind, micro_batch, chunk}};
}

}  // namespace

std::array<std::optional<StagedSlot>, 2> dependencies(const Schedule& schedule, const StagedSlot& at) {
  const auto [kind, micro_batch, chunk] = at.slot;
  const std::int64_t place = schedule.virtual_stage(at.stage, chunk);
  const std::int64_t last_place = schedule.stages * schedule.chunks - 1;
  switch (kind) {
    case SlotKind::kForward:
      if (place == 0) return {};
      return {slot_at(schedule, SlotKind::kForward, micro_batch, place - 1)};
    case SlotKind::kBackward: {
      const StagedSlot own_forward = slot_at(schedule, SlotKind::kForward, micro_batch, place);
      if (place == last_place) return {own_forward};
      return {own_forward, slot_at(schedule, SlotKind::kBackward, micro_batch, place + 1)};
    }
    case SlotKind::kWeight:
      return {slot_at(schedule, SlotKind::kBackward, micro_batch, place)};
  }
  assert(false && "unknown kind of slot");
  return {};
}

Schedule build(const plan::ParallelPlan& plan) {
  switch (plan.schedule) {
    case plan::ScheduleKind::kGpipe:
      return gpipe(plan.pipeline_parallel, plan.micro_batches());
    case plan::ScheduleKind::kOneFOneB:
      return one_f_one_b(plan.pipeline_parallel, plan.micro_batches());
    case plan::ScheduleKind::kInterleaved:
      return interleaved(plan.pipeline_parallel, plan.virtual_pipeline, plan.micro_batches());
    case plan::ScheduleKind::kZeroBubbleH1:
      return zero_bubble_h1(plan.pipeline_parallel, plan.micro_batches());
    case plan::ScheduleKind::kZeroBubbleH2:
      return zero_bubble_h2(plan.pipeline_parallel, plan.micro_batches());
  }
  assert(false && "unknown schedule");
  return {};
}

std::optional<double> bubble_ratio_theory(const plan::ParallelPlan& plan) {
  // Of a micro-batch in so many parts of equal length, one of which a stage lags behind the one before.
  const auto ratio = [&plan](std::int64_t parts) {
    const auto idle = static_cast<double>(plan.pipeline_parallel - 1);
    return idle / (static_cast<double>(parts * plan.micro_batches()) + idle);
  };
  const std::int64_t stages = plan.pipeline_parallel;
  const auto ratio_from = [&](std::int64_t fewest) {
    return plan.micro_batches() < fewest ? std::nullopt : std::optional(ratio(3));
  };
  switch (plan.schedule) {
    case plan::ScheduleKind::kGpipe:
    case plan::ScheduleKind::kOneFOneB:
      return ratio(1);
    case plan::ScheduleKind::kInterleaved:
      return ratio(plan.virtual_pipeline);
    case plan::ScheduleKind::kZeroBubbleH1:
      return ratio_from(stages);
    case plan::ScheduleKind::kZeroBubbleH2:
      return ratio_from(2 * stages - 1);
  }
  return std::nullopt;
}

double peak_in_flight(const Schedule& schedule, std::int64_t stage) {
  std::int64_t in_flight = 0;
  std::int64_t peak = 0;
  for (const Slot& slot : schedule.slots.at(static_cast<std::size_t>(stage))) {
    if (slot.kind == SlotKind::kForward) ++in_flight;
    if (slot.kind == SlotKind::kBackward) --in_flight;
    peak = std::max(peak, in_flight);
  }
  return static_cast<double>(peak) / static_cast<double>(schedule.chunks);
}

}  // namespace trainsim::schedule
