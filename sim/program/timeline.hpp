// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/job.hpp"
#include "sim/program/span.hpp"

namespace trainsim::program {

/// A schedule slot as it ran.
struct SlotSpan {
  std::uint32_t slot = 0;
  Seconds begin = 0;
  Seconds end = 0;
};

/// What the collectives of a rank took that are of one communicator, operation, size and cause, all together.
struct CollectiveTime {
  GroupKind group = GroupKind::kTensor;
  CollectiveOp op = CollectiveOp::kAllReduce;
  /// Of the whole tensor.
  double bytes = 0;
  Cause cause = Cause::kTensorCommunication;
  std::int64_t calls = 0;
  /// From when the last member was ready until the end.
  Seconds busy = 0;
  /// What of that compute waited for; the rest was hidden behind it.
  Seconds exposed = 0;
};

/// What one rank did in a step.
struct RankTimeline {
  /// Seconds of the compute stream by Cause; together with the wait for the slowest rank they add up to the
  /// step.
  std::array<Seconds, kCauses> by_cause{};
  /// Time in schedule slots, own tensor-parallel communication included.
  Seconds busy = 0;
  /// First slot's begin and last slot's end.
  Seconds first_slot = 0;
  Seconds last_slot = 0;
  /// Imbalance booked by the end of the last slot.
  Seconds imbalance_in_slots = 0;
  /// When the rank's last stream ended.
  Seconds end = 0;
  /// Collectives by what they are, in the order of their first calls.
  std::vector<CollectiveTime> collectives;
  /// How long its messages were on their way, one after the other.
  Seconds sending = 0;
  /// Slots in the order in which they ran.
  std::vector<SlotSpan> slots;
  /// Empty unless they were asked for.
  Spans spans;
};

/// Result of running a job: one entry per simulated rank.
struct Timeline {
  std::vector<RankTimeline> ranks;
  Seconds step_time = 0;
  /// Streams that were simulated, and timed activities (computes, collectives, messages).
  std::int64_t actors = 0;
  std::int64_t activities = 0;
  /// Whether the ranks' spans were recorded.
  bool has_spans = false;
};

/// The host thread of a rank, which launches the kernels of the compute stream ahead of the GPU.
class Host {
 public:
  /// Launches a segment that is ready at `now` and takes `gpu` seconds on the GPU. Returns when
  /// the segment ends: the GPU begins when the host does, if that is later, and works without a pause if the
  /// host stays ahead; else the segment ends as the last kernel has been launched. A blocking host lets the
  /// GPU idle while it launches.
  Seconds run(Seconds now, Seconds gpu, const Segment& segment) {
    const Seconds end = (now > launched_ ? now : launched_) + gpu;
    if (segment.blocking) return launched_ = end + segment.launch_seconds;
    launched_ += segment.launch_seconds;
    return end > launched_ ? end : launched_;
  }
  /// The host waits for the GPU, which is at `now`, and then does `work` before it launches anything.
  void synchronize(Seconds now, Seconds work) {
    if (now > launched_) launched_ = now;
    launched_ += work;
  }

 private:
  /// When the last kernel so far has been launched.
  Seconds launched_ = 0;
};

/// Which instruction of a rank something is about.
struct Where {
  Stream stream = Stream::kCompute;
  /// Index into the stream.
  std::uint32_t instruction = 0;
  Cause cause = Cause::kForward;
  /// The instruction itself; collectives without it are in no CollectiveTime.
  const Instruction* what = nullptr;
};

/// Collects what a rank does while an executor runs it. Times are those of the stream's own clock; a stream
/// reports in the order of its time, but streams need not agree on how far they are.
class RankRecorder {
 public:
  /// Records spans, too, if asked to.
  explicit RankRecorder(RankTimeline& timeline, bool spans = false) : timeline_(timeline), spans_(spans) {}
  /// A segment that takes `gpu` seconds on the GPU ran from `from` to `to`; the rest is waiting for launches,
  /// of which a span shows the sum before the kernels.
  void compute(Where at, Seconds from, Seconds gpu, Seconds to);
  /// The stream reached a collective at `from`, whose last member did so at `ready` and which ended at `to`.
  void collective(Where at, Seconds from, Seconds ready, Seconds to);
  /// A message was sent.
  void send(Where at, Seconds from, Seconds to);
  /// The stream waited from `from` to `to` for a message whose transfer had begun at `started`: before that
  /// it was idle for want of work, after it the message was on its way.
  void receive(Where at, Seconds from, Seconds to, Seconds started);
  /// The stream waited for an event of another one. Where that stream itself waited for other
  /// members of a collective the time is imbalance, the rest is what the instruction says.
  void wait(Where at, Seconds from, Seconds to);
  /// A slot begins or ends.
  void begin_slot(std::uint32_t slot, Seconds now);
  void end_slot(Seconds now);
  /// The rank's last stream ended.
  void finish(Seconds now);

 private:
  static constexpr std::size_t kUncounted = std::numeric_limits<std::size_t>::max();
  /// A collective beside compute: its stream waited for the other members until `ready`. One stream serves
  /// each cause, so those of one cause never overlap.
  struct Background {
    Cause cause = Cause::kImbalance;
    Seconds from = 0;
    Seconds ready = 0;
    Seconds to = 0;
    /// Index into RankTimeline::collectives, or kUncounted.
    std::size_t entry = kUncounted;
  };
  /// Counts a collective that took `busy`; returns its entry.
  std::size_t count(const Where& at, Seconds busy);
  /// The compute stream spent `duration` on `cause`.
  void spend(Cause cause, Seconds duration) {
    timeline_.by_cause[static_cast<std::size_t>(cause)] += duration;
  }
  void note(Where at, SpanKind kind, Seconds from, Seconds to) {
    if (spans_ && to > from) add_span(at, kind, from, to);
  }
  void note_idle(Where at, Cause cause, Seconds from, Seconds to) {
    at.cause = cause;
    note(at, SpanKind::kWait, from, to);
  }
  void add_span(Where at, SpanKind kind, Seconds from, Seconds to) {
    timeline_.spans[static_cast<std::size_t>(at.stream)].push_back(
        {from, to, at.instruction, kind, at.cause});
  }

  RankTimeline& timeline_;
  bool spans_;
  std::vector<Background> background_;
  /// Entry that was counted last; calls of one kind often follow each other.
  std::size_t last_ = 0;
};

/// Ends a timeline: sets the step time and books each rank's wait for the others: until the
/// last stage has drained as bubble, then as imbalance.
void close(Timeline& timeline);

}  // namespace trainsim::program
