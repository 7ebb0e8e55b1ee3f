// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace trainsim::schedule {

/// How GoogleTest prints a slot: "F2.1" is the forward of micro-batch 2 through chunk 1.
inline void PrintTo(const Slot& slot, std::ostream* out) {
  *out << "FBW"[static_cast<int>(slot.kind)] << slot.micro_batch << '.' << slot.chunk;
}

/// The inverse of PrintTo for a whole order, with chunk 0 left out if liked: "F0 F1 B0.0 B1".
inline std::vector<Slot> slots(const std::string& text) {
  std::vector<Slot> order;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t kind = std::string("FBW").find(word.front());
    const std::size_t dot = word.find('.');
    const int chunk = dot == std::string::npos ? 0 : std::stoi(word.substr(dot + 1));
    order.push_back({static_cast<SlotKind>(kind), std::stoi(word.substr(1)), chunk});
  }
  return order;
}

/// A hand-written schedule, one text per stage.
inline Schedule written(std::int64_t chunks, std::int64_t micro_batches,
                        const std::vector<std::string>& stages) {
  Schedule schedule{static_cast<std::int64_t>(stages.size()), chunks, micro_batches, {}};
  for (const std::string& stage : stages) schedule.slots.push_back(slots(stage));
  return schedule;
}

/// Time units of a pass through one chunk when every stage is equal.
struct Lengths {
  std::int64_t forward = 1;
  /// All of it, or gradients of inputs where weights have slots of their own.
  std::int64_t backward = 2;
  std::int64_t weight = 0;

  std::int64_t of(SlotKind kind) const {
    return kind == SlotKind::kForward ? forward : kind == SlotKind::kBackward ? backward : weight;
  }
};

/// What the published tables of zero-bubble schedules assume.
inline constexpr Lengths kAllEqual = {1, 1, 1};

/// Time from the first slot to the last when transfers take no time, by list scheduling: each
/// slot starts as soon as its stage is free and what it depends on has finished. Integer units, so the result
/// is exact.
inline std::int64_t makespan(const Schedule& schedule, const Lengths& lengths = {}) {
  constexpr std::int64_t kNotRun = -1;
  const auto index = [&](const StagedSlot& at) {
    const std::int64_t place = schedule.virtual_stage(at.stage, at.slot.chunk);
    return (static_cast<std::int64_t>(at.slot.kind) * schedule.micro_batches + at.slot.micro_batch) *
               schedule.stages * schedule.chunks +
           place;
  };
  std::vector<std::int64_t> end(3 * schedule.stages * schedule.chunks * schedule.micro_batches, kNotRun);
  std::vector<std::int64_t> free_at(schedule.stages, 0);
  std::vector<std::size_t> next(schedule.stages, 0);
  /// When the next slot of a stage can start; kNotRun while something it depends on has not run.
  const auto start = [&](const StagedSlot& at) {
    std::int64_t time = free_at[at.stage];
    for (const auto& needed : dependencies(schedule, at)) {
      if (!needed) continue;
      if (end[index(*needed)] == kNotRun) return kNotRun;
      time = std::max(time, end[index(*needed)]);
    }
    return time;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
      for (const auto& order = schedule.slots[stage]; next[stage] < order.size(); ++next[stage]) {
        const StagedSlot at{stage, order[next[stage]]};
        const std::int64_t time = start(at);
        if (time == kNotRun) break;
        end[index(at)] = free_at[stage] = time + lengths.of(at.slot.kind);
        moved = true;
      }
    }
  }
  for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
    if (next[stage] < schedule.slots[stage].size()) throw std::logic_error("the schedule deadlocks");
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

/// 1 - busy / (p W) as simulated above.
inline double bubble_ratio(const Schedule& schedule, const Lengths& lengths = {}) {
  std::int64_t busy = 0;
  for (const auto& order : schedule.slots) {
    for (const Slot& slot : order) busy += lengths.of(slot.kind);
  }
  return 1.0 - static_cast<double>(busy) / static_cast<double>(schedule.stages * makespan(schedule, lengths));
}

}  // namespace trainsim::schedule
