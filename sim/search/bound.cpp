// SPDX-License-Identifier: Apache-2.0
#include "sim/search/bound.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace trainsim::search {

namespace {

/// The shortest slots of a rank, one of each kind and chunk, together.
Seconds shortest_micro_batch(const std::vector<program::SlotInfo>& slots,
                             const std::vector<program::SlotSpan>& spans) {
  std::map<std::pair<char, std::int32_t>, Seconds> shortest;
  for (const program::SlotSpan& span : spans) {
    const program::SlotInfo& slot = slots[span.slot];
    const Seconds length = span.end - span.begin;
    const auto [entry, fresh] = shortest.emplace(std::pair(slot.kind, slot.chunk), length);
    if (!fresh) entry->second = std::min(entry->second, length);
  }
  Seconds sum = 0;
  for (const auto& [key, length] : shortest) sum += length;
  return sum;
}

}  // namespace

std::int64_t short_step(const plan::ParallelPlan& plan) {
  const bool interleaved = plan.schedule == plan::ScheduleKind::kInterleaved && plan.virtual_pipeline > 1;
  return std::min(plan.micro_batches(), interleaved ? 2 * plan.pipeline_parallel : std::int64_t{2});
}

Seconds step_time_bound(const program::Job& short_job, const program::Timeline& short_run,
                        std::int64_t micro_batches) {
  Seconds bound = 0;
  for (std::size_t r = 0; r < short_run.ranks.size(); ++r) {
    const program::RankTimeline& rank = short_run.ranks[r];
    const std::vector<program::SlotInfo>& slots = short_job.programs[short_job.ranks[r].program].slots;
    const Seconds each = shortest_micro_batch(slots, rank.slots);
    const Seconds after = short_run.step_time - rank.last_slot;
    bound = std::max(bound, rank.first_slot + static_cast<double>(micro_batches) * each + after);
  }
  return bound;
}

}  // namespace trainsim::search
