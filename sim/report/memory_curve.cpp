// SPDX-License-Identifier: Apache-2.0
#include "sim/report/memory_curve.hpp"

#include <utility>

namespace trainsim::report {

std::string slot_name(const program::Program& program, std::int32_t slot) {
  if (slot < 0) return "outside the pipeline slots";
  const program::SlotInfo& info = program.slots[static_cast<std::size_t>(slot)];
  const char* kind = info.kind == 'F' ? "forward" : info.kind == 'B' ? "backward" : "weight gradient";
  std::string text = std::string(kind) + " of micro-batch " + std::to_string(info.micro_batch);
  return info.chunk > 0 ? text + ", chunk " + std::to_string(info.chunk) : text;
}

std::vector<MemorySpan> memory_curve(const program::Program& program, const memory::Profile& profile,
                                     const program::RankTimeline& timeline) {
  std::vector<MemorySpan> curve;
  curve.reserve(profile.curve.size());
  std::size_t next = 0;
  Seconds now = 0;
  for (const memory::MemoryPoint& point : profile.curve) {
    MemorySpan span{now, now, now, "", point.begin, point.peak, point.end};
    if (point.slot >= 0) {
      span.slot = slot_name(program, point.slot);
      span.begin = timeline.slots[next].begin;
      span.end = timeline.slots[next].end;
      ++next;
      // Waiting between two slots changes nothing.
      if (!curve.empty()) curve.back().end = span.begin;
    } else {
      span.end = next < timeline.slots.size() ? timeline.slots[next].begin : timeline.end;
    }
    span.peak_time = span.begin + point.peak_share * (span.end - span.begin);
    now = span.end;
    curve.push_back(std::move(span));
  }
  return curve;
}

}  // namespace trainsim::report
