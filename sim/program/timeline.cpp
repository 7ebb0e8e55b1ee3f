// SPDX-License-Identifier: Apache-2.0
#include "sim/program/timeline.hpp"

#include <algorithm>

namespace trainsim::program {

namespace {

/// Differences of clocks below this, in seconds, are rounding.
constexpr Seconds kRounding = 1e-12;

/// Spends up to `drain` seconds of imbalance after the last slot as bubble, from the first on, and lets the
/// compute stream wait for the step's end.
void close_spans(RankTimeline& rank, Seconds drain, Seconds step_time) {
  std::vector<Span>& spans = rank.spans[static_cast<std::size_t>(Stream::kCompute)];
  const Seconds now = spans.empty() ? 0 : spans.back().end;
  if (step_time > now) {
    spans.push_back({now, step_time, Span::kStepEnd, SpanKind::kWait, Cause::kImbalance});
  }
  for (std::size_t i = 0; i < spans.size() && drain > kRounding; ++i) {
    if (spans[i].cause != Cause::kImbalance || spans[i].begin < rank.last_slot) continue;
    spans[i].cause = Cause::kBubble;
    const Seconds rest = spans[i].duration() - drain;
    drain -= spans[i].duration();
    if (rest <= kRounding) continue;
    Span imbalance = spans[i];
    imbalance.cause = Cause::kImbalance;
    imbalance.begin = spans[i].end = spans[i].end - rest;
    spans.insert(spans.begin() + static_cast<std::ptrdiff_t>(i) + 1, imbalance);
  }
}

}  // namespace

void RankRecorder::compute(Where at, Seconds from, Seconds gpu, Seconds to) {
  if (at.stream == Stream::kCompute) {
    spend(at.cause, gpu);
    spend(Cause::kLaunch, to - from - gpu);
  }
  const Seconds begin = to - from - gpu > kRounding ? to - gpu : from;
  note_idle(at, Cause::kLaunch, from, begin);
  note(at, SpanKind::kKernels, begin, to);
}

void RankRecorder::collective(Where at, Seconds from, Seconds ready, Seconds to) {
  const std::size_t entry = count(at, to - ready);
  if (at.stream == Stream::kCompute) {
    spend(Cause::kImbalance, ready - from);
    spend(at.cause, to - ready);
    if (entry != kUncounted) timeline_.collectives[entry].exposed += to - ready;
  } else {
    background_.push_back({at.cause, from, ready, to, entry});
  }
  note_idle(at, Cause::kImbalance, from, ready);
  note(at, SpanKind::kCollective, ready, to);
}

std::size_t RankRecorder::count(const Where& at, Seconds busy) {
  if (at.what == nullptr) return kUncounted;
  std::vector<CollectiveTime>& list = timeline_.collectives;
  const Instruction& call = *at.what;
  const auto is_same = [&call](const CollectiveTime& entry) {
    return entry.bytes == call.amount && entry.op == call.collective && entry.group == call.group &&
           entry.cause == call.cause;
  };
  if (last_ >= list.size() || !is_same(list[last_])) {
    const auto found = std::find_if(list.begin(), list.end(), is_same);
    last_ = static_cast<std::size_t>(found - list.begin());
    if (found == list.end()) list.push_back({call.group, call.collective, call.amount, call.cause});
  }
  ++list[last_].calls;
  list[last_].busy += busy;
  return last_;
}

void RankRecorder::send(Where at, Seconds from, Seconds to) {
  timeline_.sending += to - from;
  if (at.stream == Stream::kCompute) spend(at.cause, to - from);
  if (spans_) add_span(at, SpanKind::kSend, from, to);
}

void RankRecorder::receive(Where at, Seconds from, Seconds to, Seconds started) {
  const Seconds begin = std::clamp(started, from, to);
  if (at.stream == Stream::kCompute) {
    spend(Cause::kBubble, begin - from);
    spend(at.cause, to - begin);
  }
  note_idle(at, Cause::kBubble, from, begin);
  if (spans_) add_span(at, SpanKind::kReceive, begin, to);
}

void RankRecorder::wait(Where at, Seconds from, Seconds to) {
  if (at.stream != Stream::kCompute) return;
  Seconds idle = 0;
  Seconds noted = from;
  for (const Background& other : background_) {
    if (other.cause != at.cause) continue;
    const Seconds ready = std::clamp(other.ready, from, to);
    if (other.entry != kUncounted)
      timeline_.collectives[other.entry].exposed += std::max(0.0, std::min(to, other.to) - ready);
    const Seconds begin = std::max(from, other.from);
    if (ready <= begin) continue;
    idle += ready - begin;
    note(at, SpanKind::kWait, noted, begin);
    note_idle(at, Cause::kImbalance, begin, ready);
    noted = ready;
  }
  note(at, SpanKind::kWait, noted, to);
  spend(Cause::kImbalance, idle);
  spend(at.cause, to - from - idle);
  // The compute stream never looks back before `to`.
  std::erase_if(background_, [to](const Background& other) { return other.to <= to; });
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
    if (timeline.has_spans) close_spans(rank, drain, timeline.step_time);
  }
}

}  // namespace trainsim::program
