// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/program.hpp"

namespace trainsim::program {

struct Job;
struct Group;

/// What a stream did in a span of time.
enum class SpanKind : std::uint8_t {
  /// Ran the kernels of a segment.
  kKernels,
  kCollective,
  kSend,
  /// Waited for a message that was on its way; recorded for every message, with length 0 if it was there.
  kReceive,
  /// Was idle, for the reason that the cause names.
  kWait,
};

/// A stretch of a stream's time. Recorded only when the executor is asked to; the spans of a compute stream
/// then follow each other without gaps from 0 to the step's end, and add up to the rank's breakdown. Other
/// streams have gaps where they wait for the compute stream.
struct Span {
  Seconds begin = 0;
  Seconds end = 0;
  /// Index into the program's stream: what ran, or what was waited for. kStepEnd for the wait for other ranks
  /// to end the step.
  std::uint32_t instruction = kStepEnd;
  SpanKind kind = SpanKind::kWait;
  Cause cause = Cause::kImbalance;

  static constexpr std::uint32_t kStepEnd = std::numeric_limits<std::uint32_t>::max();
  Seconds duration() const { return end - begin; }
};

/// Spans of a rank by Stream, each list in the order of time.
using Spans = std::array<std::vector<Span>, kStreams>;

/// What a span was about.
struct SpanDetails {
  /// The segment's name; "nccl:all_reduce", "nccl:send" or "nccl:recv" as in PyTorch's profiler; or "wait for
  /// " and what for.
  std::string name;
  /// Index into Program::slots; -1 outside slots. Transfers belong to the slot whose input or output they
  /// are.
  std::int32_t slot = -1;
  /// Number of the layer in the model; -1 where it is no layer's.
  std::int32_t layer = -1;
  /// Of the whole tensor that a collective works on, or of a message that is sent; else 0.
  double bytes = 0;
  /// Of a collective; else null.
  const Group* group = nullptr;
  /// Index into Job::ranks of the receiver of a send; else -1.
  std::int32_t receiver = -1;
  /// Number of a message that is sent or received among those of its receiver; else -1.
  std::int64_t message = -1;
};

/// Looks up what a span of `stream` of rank `rank` (an index into Job::ranks) was about.
SpanDetails describe(const Job& job, std::size_t rank, Stream stream, const Span& span);

}  // namespace trainsim::program
