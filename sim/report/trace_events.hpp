// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/units.hpp"
#include "sim/report/trace.hpp"

namespace trainsim::report {

/// A row of a trace.
struct TraceRow {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

/// Text of a JSON string, with its quotes.
std::string quoted(std::string_view text);

/// Writes the events of a Chrome trace one after the other, each on a line of its own. Times are rounded to
/// nanoseconds; equal times stay equal, so that events that touch still touch.
class TraceEvents {
 public:
  /// `head` is what the JSON object holds beside the events: `"key":value` pairs.
  TraceEvents(const TextSink& sink, std::string_view head);
  /// Ends the JSON object. To be called once, after the last event.
  void finish();

  /// Names a process or a thread, and places it among its like.
  void name_process(std::int64_t process, std::string_view name, std::int64_t position);
  void name_thread(TraceRow row, std::string_view name);
  /// A complete event. `arguments` is the inside of a JSON object and may be empty.
  void complete(TraceRow row, std::string_view name, std::string_view category, Seconds begin, Seconds end,
                std::string_view arguments);
  /// The begin and the end of an arrow between complete events that begin at these times.
  void flow_begin(TraceRow row, std::int64_t id, Seconds time);
  void flow_end(TraceRow row, std::int64_t id, Seconds time);
  /// A counter's value from a time on.
  void counter(std::int64_t process, std::string_view name, Seconds time, Bytes bytes);

 private:
  /// Begins an event of a phase.
  void open(char phase, TraceRow row);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, std::int64_t value);
  /// Microseconds with three digits after the point.
  void add_time(std::string_view key, std::int64_t ns);
  void close();
  void flush();

  const TextSink& sink_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace trainsim::report
