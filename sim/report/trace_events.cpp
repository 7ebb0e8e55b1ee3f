// SPDX-License-Identifier: Apache-2.0
#include "sim/report/trace_events.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "sim/report/json_dump.hpp"

namespace trainsim::report {

namespace {

/// Text that is handed on at a time.
constexpr std::size_t kPiece = std::size_t{1} << 16U;

std::int64_t nanoseconds(Seconds time) {
  return std::llround(time * kGiga);
}

void append(std::string& text, std::int64_t value) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append(digits.data(), end);
}

}  // namespace

std::string quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

TraceEvents::TraceEvents(const TextSink& sink, std::string_view head) : sink_(sink) {
  buffer_.append("{").append(head).append(",\"traceEvents\":[");
}

void TraceEvents::finish() {
  buffer_ += "\n]}\n";
  flush();
}

void TraceEvents::name_process(std::int64_t process, std::string_view name, std::int64_t position) {
  open('M', {process, 0});
  add("name", "\"process_name\"");
  buffer_.append(",\"args\":{\"name\":").append(quoted(name)).append("}");
  close();
  open('M', {process, 0});
  add("name", "\"process_sort_index\"");
  buffer_ += ",\"args\":{";
  buffer_ += "\"sort_index\":";
  append(buffer_, position);
  buffer_ += "}";
  close();
}

void TraceEvents::name_thread(TraceRow row, std::string_view name) {
  open('M', row);
  add("name", "\"thread_name\"");
  buffer_.append(",\"args\":{\"name\":").append(quoted(name)).append("}");
  close();
  open('M', row);
  add("name", "\"thread_sort_index\"");
  buffer_ += ",\"args\":{\"sort_index\":";
  append(buffer_, row.thread);
  buffer_ += "}";
  close();
}

void TraceEvents::complete(TraceRow row, std::string_view name, std::string_view category, Seconds begin,
                           Seconds end, std::string_view arguments) {
  open('X', row);
  add("name", quoted(name));
  add("cat", quoted(category));
  add_time("ts", nanoseconds(begin));
  add_time("dur", nanoseconds(end) - nanoseconds(begin));
  if (!arguments.empty()) buffer_.append(",\"args\":{").append(arguments).append("}");
  close();
}

void TraceEvents::flow_begin(TraceRow row, std::int64_t id, Seconds time) {
  open('s', row);
  add("name", "\"message\"");
  add("cat", "\"message\"");
  add("id", id);
  add_time("ts", nanoseconds(time));
  close();
}

void TraceEvents::flow_end(TraceRow row, std::int64_t id, Seconds time) {
  open('f', row);
  add("bp", "\"e\"");
  add("name", "\"message\"");
  add("cat", "\"message\"");
  add("id", id);
  add_time("ts", nanoseconds(time));
  close();
}

void TraceEvents::counter(std::int64_t process, std::string_view name, Seconds time, Bytes bytes) {
  open('C', {process, 0});
  add("name", quoted(name));
  add_time("ts", nanoseconds(time));
  buffer_ += ",\"args\":{\"bytes\":";
  append(buffer_, bytes);
  buffer_ += "}";
  close();
}

void TraceEvents::open(char phase, TraceRow row) {
  buffer_ += first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  first_ = false;
  buffer_ += phase;
  buffer_ += '"';
  add("pid", row.process);
  add("tid", row.thread);
}

void TraceEvents::add(std::string_view key, std::string_view value) {
  buffer_.append(",\"").append(key).append("\":").append(value);
}

void TraceEvents::add(std::string_view key, std::int64_t value) {
  buffer_.append(",\"").append(key).append("\":");
  append(buffer_, value);
}

void TraceEvents::add_time(std::string_view key, std::int64_t ns) {
  add(key, ns / 1000);
  const std::int64_t rest = ns % 1000;
  if (rest == 0) return;
  buffer_ += rest < 10 ? ".00" : rest < 100 ? ".0" : ".";
  append(buffer_, rest);
}

void TraceEvents::close() {
  buffer_ += '}';
  if (buffer_.size() >= kPiece) flush();
}

void TraceEvents::flush() {
  sink_(buffer_);
  buffer_.clear();
}

}  // namespace trainsim::report
