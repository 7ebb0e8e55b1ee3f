// SPDX-License-Identifier: Apache-2.0
#include "sim/report/trace.hpp"

#include <map>
#include <utility>
#include <vector>

#include "sim/memory/ledger.hpp"
#include "sim/report/json_dump.hpp"
#include "sim/report/memory_curve.hpp"
#include "sim/report/trace_events.hpp"

namespace trainsim::report {

namespace {

using program::Span;
using program::SpanDetails;
using program::SpanKind;
using program::Stream;

/// Threads of a process are numbered from 1: some programs take 0 for the idle thread. The schedule is above
/// the streams.
constexpr std::int64_t kScheduleThread = 1;

std::int64_t thread_of(Stream stream) {
  return kScheduleThread + 1 + static_cast<std::int64_t>(stream);
}

/// "F3".
std::string slot_label(const program::SlotInfo& slot) {
  return slot.kind + std::to_string(slot.micro_batch);
}

/// Inside of a JSON object.
class Arguments {
 public:
  void add(std::string_view key, std::int64_t value) { raw(key, std::to_string(value)); }
  void add(std::string_view key, std::string_view value) { raw(key, quoted(value)); }
  void add_slot(const program::SlotInfo& slot) {
    add("micro_batch", slot.micro_batch);
    add("chunk", slot.chunk);
  }
  const std::string& text() const { return text_; }

 private:
  void raw(std::string_view key, std::string_view value) {
    if (!text_.empty()) text_ += ',';
    text_.append("\"").append(key).append("\":").append(value);
  }
  std::string text_;
};

/// What a trace holds beside its events.
std::string head(const TraceSource& source) {
  const std::string represented =
      source.job.folded ? "one of each kind of rank; the name of a process says how many are alike"
                        : "every rank";
  const Json about = {{"trainsim_version", source.version},  {"config", source.summary.name},
                      {"model", source.summary.model.name},  {"cluster", source.summary.cluster_name},
                      {"network", source.summary.network},   {"step_time_s", source.timeline.step_time},
                      {"world_size", source.job.world_size}, {"simulated_ranks", source.job.ranks.size()},
                      {"compact", source.compact},           {"represents", represented}};
  return "\"displayTimeUnit\":\"ms\",\"otherData\":" +
         about.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A stretch of the compute stream in which a layer of a slot is worked on.
struct LayerStretch {
  program::Place place;
  Seconds begin = 0;
  Seconds end = 0;
};

bool same(const program::Place& a, const program::Place& b) {
  return a.slot == b.slot && a.layer == b.layer;
}

/// In the order of time.
std::vector<LayerStretch> layers_of(const program::Program& program, const std::vector<Span>& compute) {
  std::vector<LayerStretch> layers;
  layers.reserve(program.places.front().size());
  for (const Span& span : compute) {
    if (span.instruction == Span::kStepEnd) continue;
    const program::Place place = program.place_of(Stream::kCompute, span.instruction);
    if (place.slot < 0 || place.layer < 0) continue;
    if (!layers.empty() && same(layers.back().place, place)) {
      layers.back().end = span.end;
    } else {
      layers.push_back({place, span.begin, span.end});
    }
  }
  return layers;
}

/// Writes the events of a run, rank by rank.
class TraceWriter {
 public:
  TraceWriter(const TraceSource& source, TraceEvents& events)
      : job_(source.job), timeline_(source.timeline), compact_(source.compact), events_(events) {}
  void write() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) write_rank(rank);
  }

 private:
  const program::Program& program_of(std::size_t rank) const {
    return job_.programs[job_.ranks[rank].program];
  }
  std::int64_t process_of(std::size_t rank) const { return job_.ranks[rank].id; }
  void write_rank(std::size_t rank);
  void name_rows(std::size_t rank);
  void write_schedule(std::size_t rank);
  void write_stream(std::size_t rank, Stream stream);
  /// Whether two spans that follow each other may be one event.
  bool joins(std::size_t rank, Stream stream, const Span& span, const Span& next) const;
  void write_spans(std::size_t rank, Stream stream, const Span& first, const Span& last);
  void write_flow(std::size_t rank, TraceRow row, const Span& span, const SpanDetails& details);
  void write_memory(std::size_t rank);
  std::string arguments_of(std::size_t rank, const Span& span, const SpanDetails& details) const;
  /// Number of a message's arrow: one for each receiver and message.
  std::int64_t flow_of(std::size_t receiver, std::int64_t message) {
    const auto next = static_cast<std::int64_t>(flows_.size()) + 1;
    return flows_.try_emplace(std::pair(receiver, message), next).first->second;
  }

  const program::Job& job_;
  const program::Timeline& timeline_;
  bool compact_;
  TraceEvents& events_;
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> flows_;
};

void TraceWriter::write_rank(std::size_t rank) {
  name_rows(rank);
  write_schedule(rank);
  for (int stream = 0; stream < program::kStreams; ++stream) write_stream(rank, static_cast<Stream>(stream));
  write_memory(rank);
}

void TraceWriter::name_rows(std::size_t rank) {
  const program::Rank& who = job_.ranks[rank];
  std::string name = "rank " + std::to_string(who.id) + " (stage " + std::to_string(who.stage);
  if (who.represents > 1) name += ", one of " + std::to_string(who.represents) + " alike";
  if (who.slowdown != 1.0) name += ", a slow GPU";
  events_.name_process(who.id, name + ")", static_cast<std::int64_t>(rank));
  events_.name_thread({who.id, kScheduleThread}, "schedule");
  for (int s = 0; s < program::kStreams; ++s) {
    const auto stream = static_cast<Stream>(s);
    if (timeline_.ranks[rank].spans[static_cast<std::size_t>(s)].empty()) continue;
    events_.name_thread({who.id, thread_of(stream)}, program::to_string(stream));
  }
}

void TraceWriter::write_schedule(std::size_t rank) {
  const program::Program& program = program_of(rank);
  const std::vector<LayerStretch> layers = layers_of(program, timeline_.ranks[rank].spans.front());
  const TraceRow row{process_of(rank), kScheduleThread};
  auto layer = layers.begin();
  for (const program::SlotSpan& span : timeline_.ranks[rank].slots) {
    const program::SlotInfo& slot = program.slots[span.slot];
    Arguments arguments;
    arguments.add_slot(slot);
    const char* kind = slot.kind == 'F' ? "forward" : slot.kind == 'B' ? "backward" : "weight gradient";
    events_.complete(row, slot_label(slot), kind, span.begin, span.end, arguments.text());
    for (; layer != layers.end() && layer->place.slot == static_cast<std::int32_t>(span.slot); ++layer) {
      events_.complete(row, "layer " + std::to_string(layer->place.layer), "layer", layer->begin, layer->end,
                       "");
    }
  }
}

void TraceWriter::write_stream(std::size_t rank, Stream stream) {
  const std::vector<Span>& spans = timeline_.ranks[rank].spans[static_cast<std::size_t>(stream)];
  for (std::size_t first = 0; first < spans.size();) {
    std::size_t last = first;
    while (last + 1 < spans.size() && joins(rank, stream, spans[last], spans[last + 1])) ++last;
    write_spans(rank, stream, spans[first], spans[last]);
    first = last + 1;
  }
}

bool TraceWriter::joins(std::size_t rank, Stream stream, const Span& span, const Span& next) const {
  if (!compact_ || span.kind != SpanKind::kKernels || next.kind != SpanKind::kKernels) return false;
  if (span.cause != next.cause || span.end != next.begin) return false;
  const program::Program& program = program_of(rank);
  return same(program.place_of(stream, span.instruction), program.place_of(stream, next.instruction));
}

void TraceWriter::write_spans(std::size_t rank, Stream stream, const Span& first, const Span& last) {
  const Span span{first.begin, last.end, first.instruction, first.kind, first.cause};
  SpanDetails details = program::describe(job_, rank, stream, span);
  if (&first != &last) details.name += " … " + program::describe(job_, rank, stream, last).name;
  const TraceRow row{process_of(rank), thread_of(stream)};
  events_.complete(row, details.name, program::to_string(span.cause), span.begin, span.end,
                   arguments_of(rank, span, details));
  if (span.kind == SpanKind::kSend || span.kind == SpanKind::kReceive) write_flow(rank, row, span, details);
}

std::string TraceWriter::arguments_of(std::size_t rank, const Span& span, const SpanDetails& details) const {
  Arguments arguments;
  if (!compact_ && details.slot >= 0)
    arguments.add_slot(program_of(rank).slots[static_cast<std::size_t>(details.slot)]);
  if (!compact_ && details.layer >= 0) arguments.add("layer", details.layer);
  if (span.kind == SpanKind::kCollective || span.kind == SpanKind::kSend)
    arguments.add("bytes", static_cast<std::int64_t>(details.bytes));
  if (!compact_ && details.group != nullptr) {
    arguments.add("group", program::to_string(details.group->kind));
    arguments.add("group_size", details.group->size);
  }
  if (details.receiver >= 0) arguments.add("to_rank", process_of(static_cast<std::size_t>(details.receiver)));
  return arguments.text();
}

/// Both ends lie at the begin of their events: a transfer begins no later than the wait for it is over.
void TraceWriter::write_flow(std::size_t rank, TraceRow row, const Span& span, const SpanDetails& details) {
  if (span.kind == SpanKind::kSend) {
    events_.flow_begin(row, flow_of(static_cast<std::size_t>(details.receiver), details.message), span.begin);
  } else {
    events_.flow_end(row, flow_of(rank, details.message), span.begin);
  }
}

void TraceWriter::write_memory(std::size_t rank) {
  const std::vector<MemorySpan> curve =
      memory_curve(program_of(rank), memory::replay(program_of(rank)), timeline_.ranks[rank]);
  Bytes shown = -1;
  const auto show = [&](Seconds time, Bytes bytes) {
    if (bytes != shown) events_.counter(process_of(rank), "allocated memory", time, bytes);
    shown = bytes;
  };
  for (const MemorySpan& span : curve) {
    // State is there when the step begins.
    if (&span != &curve.front()) show(span.begin, span.at_begin);
    show(span.peak_time, span.peak);
    show(span.end, span.at_end);
  }
}

}  // namespace

void write_trace(const TraceSource& source, const TextSink& sink) {
  TraceEvents events(sink, head(source));
  TraceWriter(source, events).write();
  events.finish();
}

}  // namespace trainsim::report
