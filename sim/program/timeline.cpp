// SPDX-License-Identifier: Apache-2.0
#include "sim/program/timeline.hpp"

#include <algorithm>

namespace trainsim::program {

void RankRecorder::wait_for_transfer(Seconds from, Seconds to, Seconds started, Cause idle, Cause transfer) {
  const Seconds begin = std::clamp(started, from, to);
  spend(idle, begin - from);
  spend(transfer, to - begin);
}

void RankRecorder::note_member_wait(Cause cause, Seconds from, Seconds to) {
  if (to > from) member_waits_.push_back({cause, from, to});
}

void RankRecorder::wait_for_event(Seconds from, Seconds to, Cause cause) {
  Seconds idle = 0;
  for (const MemberWait& wait : member_waits_) {
    if (wait.cause == cause) idle += std::max(0.0, std::min(to, wait.to) - std::max(from, wait.from));
  }
  spend(Cause::kImbalance, idle);
  spend(cause, to - from - idle);
  // The compute stream never looks back before `to`.
  std::erase_if(member_waits_, [to](const MemberWait& wait) { return wait.to <= to; });
}

void RankRecorder::begin_slot(std::uint32_t slot, Seconds now) {
  if (timeline_.slots.empty()) timeline_.first_slot = now;
  timeline_.slots.push_back({slot, now, now});
}

void RankRecorder::end_slot(Seconds now) {
  SlotSpan& span = timeline_.slots.back();
  span.end = now;
  timeline_.busy += now - span.begin;
  timeline_.last_slot = now;
  timeline_.imbalance_in_slots = timeline_.by_cause[static_cast<std::size_t>(Cause::kImbalance)];
}

void RankRecorder::finish(Seconds now) {
  timeline_.end = std::max(timeline_.end, now);
}

void close(Timeline& timeline) {
  Seconds window_end = 0;
  for (const RankTimeline& rank : timeline.ranks) {
    timeline.step_time = std::max(timeline.step_time, rank.end);
    window_end = std::max(window_end, rank.last_slot);
  }
  for (RankTimeline& rank : timeline.ranks) {
    Seconds accounted = 0;
    for (const Seconds seconds : rank.by_cause) accounted += seconds;
    Seconds& imbalance = rank.by_cause[static_cast<std::size_t>(Cause::kImbalance)];
    imbalance += timeline.step_time - accounted;
    // A stage that is through waits for the others to drain: the second half of the bubble.
    const Seconds drain = std::clamp(imbalance - rank.imbalance_in_slots, 0.0, window_end - rank.last_slot);
    imbalance -= drain;
    rank.by_cause[static_cast<std::size_t>(Cause::kBubble)] += drain;
  }
}

}  // namespace trainsim::program
