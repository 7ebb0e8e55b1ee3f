// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// Takes the pieces of a text in order.
using TextSink = std::function<void(std::string_view)>;

/// What a trace is made from.
struct TraceSource {
  const Summary& summary;
  const program::Job& job;
  /// REQUIRES: with spans.
  const program::Timeline& timeline;
  /// Of the program.
  std::string version;
  /// Shorten it: kernels of one layer and cause that follow each other become one event, and arguments that
  /// the row of the schedule shows, or the group of a collective, are left out.
  bool compact = false;
};

/// Writes what every simulated rank did when as a Chrome trace (JSON object format), which Perfetto and
/// chrome://tracing open: a process per rank, a thread per stream, flows from sends to receives, a counter
/// for allocated memory (docs/trace.md). The text goes to `sink` piece by piece, so that it need not fit into
/// memory.
void write_trace(const TraceSource& source, const TextSink& sink);

}  // namespace trainsim::report
