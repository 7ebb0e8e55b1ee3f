// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/program/span.hpp"
#include "sim/report/page/parts.hpp"

namespace trainsim::report {

namespace {

using program::Instruction;
using program::Opcode;
using program::Program;

/// Times are whole numbers of this share of the step, far below what a screen can show.
constexpr double kTicks = 1e8;
/// Slots of all rows together, so that a page stays below 2 MB.
constexpr std::size_t kMostSlots = 28'000;
/// Up to this many simulated ranks have a row each; of more only one per stage.
constexpr std::size_t kAllRanks = 16;

/// Parts of slots in all lists together, for the same reason.
constexpr std::size_t kMostParts = 20'000;

/// What runs in a slot: segments, and collectives behind them.
using Content = std::vector<std::uint32_t>;
constexpr std::uint32_t kCollectiveBit = 1U << 31U;

/// Contents of the slots of a program.
std::vector<Content> contents_of(const Program& program) {
  std::vector<Content> contents(program.slots.size());
  Content* open = nullptr;
  for (const Instruction& instruction : program.stream(program::Stream::kCompute)) {
    if (instruction.op == Opcode::kSlotBegin) open = &contents[instruction.id];
    if (instruction.op == Opcode::kSlotEnd) open = nullptr;
    if (open == nullptr) continue;
    if (instruction.op == Opcode::kCompute) open->push_back(instruction.id);
    if (instruction.op == Opcode::kCollective)
      open->push_back(kCollectiveBit | static_cast<std::uint32_t>(instruction.collective));
  }
  return contents;
}

/// Runs and seconds of one operation in a slot.
struct Operation {
  std::int64_t runs = 0;
  Seconds seconds = 0;
};

/// Operations of a slot, those that take most first; collectives without a time, which depends on others.
Json operations_json(const Program& program, const Content& content) {
  std::map<std::string, Operation> operations;
  for (const std::uint32_t code : content) {
    if ((code & kCollectiveBit) != 0) {
      ++operations[program::to_string(static_cast<program::CollectiveOp>(code & ~kCollectiveBit))].runs;
      continue;
    }
    for (const program::Kernel& kernel : program.segments[code].kernels) {
      Operation& operation = operations[kernel.name];
      ++operation.runs;
      operation.seconds += kernel.seconds;
    }
  }
  std::vector<std::pair<std::string, Operation>> sorted(operations.begin(), operations.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  Json list = Json::array();
  for (const auto& [name, operation] : sorted)
    list.push_back(Json::array({name, operation.runs, operation.seconds}));
  return list;
}

/// Lists of operations, each once.
class Operations {
 public:
  explicit Operations(const program::Job& job) : job_(job), contents_(job.programs.size()) {}
  /// Index of the list of a slot.
  std::size_t of(std::uint32_t program, std::uint32_t slot) {
    if (contents_[program].empty()) contents_[program] = contents_of(job_.programs[program]);
    const auto key = std::make_pair(program, contents_[program][slot]);
    const auto known = by_content_.find(key);
    if (known != by_content_.end()) return known->second;
    Json list = operations_json(job_.programs[program], key.second);
    const std::size_t index = by_text_.emplace(list.dump(), lists_.size()).first->second;
    if (index == lists_.size()) lists_.push_back(std::move(list));
    by_content_.emplace(key, index);
    return index;
  }
  const Json& lists() const { return lists_; }

 private:
  const program::Job& job_;
  std::vector<std::vector<Content>> contents_;
  std::map<std::pair<std::uint32_t, Content>, std::size_t> by_content_;
  std::map<std::string, std::size_t> by_text_;
  Json lists_ = Json::array();
};

std::int64_t ticks(Seconds time, Seconds step) {
  return std::llround(time / step * kTicks);
}

/// What a slot was made of, one after the other: kernels, collectives and waits, as triples of a name's
/// number, begin after the slot's begin, and duration. Slots that ran alike share one list.
class Parts {
 public:
  explicit Parts(const Page& page) : page_(page) {}
  /// Index of the list of a slot; -1 without recorded spans, or when there is no room for more lists.
  std::int64_t of(std::size_t rank, const program::SlotSpan& slot) {
    std::vector<std::int64_t> list;
    const auto& spans = page_.timeline.ranks[rank].spans[static_cast<std::size_t>(program::Stream::kCompute)];
    auto span = std::lower_bound(spans.begin(), spans.end(), slot.begin,
                                 [](const program::Span& each, Seconds time) { return each.begin < time; });
    for (; span != spans.end() && span->begin < slot.end; ++span) add(rank, *span, slot.begin, list);
    if (list.empty()) return -1;
    const auto known = by_content_.find(list);
    if (known != by_content_.end()) return known->second;
    if (size_ + list.size() > 3 * kMostParts) return -1;
    size_ += list.size();
    const auto index = static_cast<std::int64_t>(lists_.size());
    lists_.push_back(list);
    by_content_.emplace(std::move(list), index);
    return index;
  }
  Json json() const { return {{"names", names_}, {"lists", lists_}}; }

 private:
  void add(std::size_t rank, const program::Span& span, Seconds begin, std::vector<std::int64_t>& list) {
    const program::Rank& who = page_.job.ranks[rank];
    if (span.kind != program::SpanKind::kKernels) {
      push(program::describe(page_.job, rank, program::Stream::kCompute, span).name, span.begin - begin,
           span.duration(), list);
      return;
    }
    const Program& program = page_.job.programs[who.program];
    const Instruction& instruction = program.stream(program::Stream::kCompute)[span.instruction];
    Seconds at = span.begin - begin;
    for (const program::Kernel& kernel : program.segments[instruction.id].kernels) {
      push(kernel.name, at, kernel.seconds * who.slowdown, list);
      at += kernel.seconds * who.slowdown;
    }
  }
  void push(const std::string& name, Seconds begin, Seconds duration, std::vector<std::int64_t>& list) {
    const Seconds step = page_.timeline.step_time;
    if (ticks(duration, step) == 0) return;
    const auto [entry, is_new] = numbers_.emplace(name, static_cast<std::int64_t>(names_.size()));
    if (is_new) names_.push_back(name);
    list.insert(list.end(), {entry->second, ticks(begin, step), ticks(duration, step)});
  }

  const Page& page_;
  std::map<std::string, std::int64_t> numbers_;
  std::map<std::vector<std::int64_t>, std::int64_t> by_content_;
  std::size_t size_ = 0;
  Json names_ = Json::array();
  Json lists_ = Json::array();
};

Json row_json(const Page& page, std::size_t index, Operations& operations, Parts& parts) {
  const program::Rank& rank = page.job.ranks[index];
  const program::RankTimeline& timeline = page.timeline.ranks[index];
  const Seconds step = page.timeline.step_time;
  std::string kinds;
  Json micro_batches = Json::array();
  Json chunks = Json::array();
  Json begins = Json::array();
  Json durations = Json::array();
  Json contents = Json::array();
  Json details = Json::array();
  for (const program::SlotSpan& span : timeline.slots) {
    const program::SlotInfo& slot = page.job.programs[rank.program].slots[span.slot];
    kinds.push_back(slot.kind);
    micro_batches.push_back(slot.micro_batch);
    chunks.push_back(slot.chunk);
    begins.push_back(ticks(span.begin, step));
    durations.push_back(ticks(span.end, step) - ticks(span.begin, step));
    contents.push_back(operations.of(rank.program, span.slot));
    details.push_back(parts.of(index, span));
  }
  return {{"rank", rank.id},
          {"stage", rank.stage},
          {"represents", rank.represents},
          {"slowdown", rank.slowdown},
          {"end", ticks(timeline.end, step)},
          {"kinds", kinds},
          {"micro_batches", std::move(micro_batches)},
          {"chunks", std::move(chunks)},
          {"begins", std::move(begins)},
          {"durations", std::move(durations)},
          {"operations", std::move(contents)},
          {"parts", std::move(details)}};
}

/// One simulated rank per stage, the busiest; all of them if there are few.
std::vector<std::size_t> candidates(const Page& page) {
  std::map<std::int64_t, std::size_t> busiest;
  const auto& ranks = page.job.ranks;
  const auto& timelines = page.timeline.ranks;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (timelines[i].slots.empty()) continue;
    all.push_back(i);
    const auto found = busiest.try_emplace(ranks[i].stage, i).first;
    if (timelines[i].busy > timelines[found->second].busy) found->second = i;
  }
  if (all.size() > kAllRanks) {
    all.clear();
    all.reserve(busiest.size());
    for (const auto& [stage, index] : busiest) all.push_back(index);
  }
  std::stable_sort(all.begin(), all.end(),
                   [&ranks](auto a, auto b) { return ranks[a].stage < ranks[b].stage; });
  return all;
}

/// As many of them as there is room for, the first and the last among them.
std::vector<std::size_t> thinned(const std::vector<std::size_t>& rows, std::size_t slots_of_a_row) {
  const std::size_t room = std::max<std::size_t>(2, kMostSlots / std::max<std::size_t>(1, slots_of_a_row));
  if (rows.size() <= room) return rows;
  std::vector<std::size_t> kept(room);
  for (std::size_t i = 0; i < room; ++i) kept[i] = rows[i * (rows.size() - 1) / (room - 1)];
  return kept;
}

}  // namespace

Json timeline_json(const Page& page) {
  const std::vector<std::size_t> all = candidates(page);
  std::size_t longest = 0;
  for (const std::size_t index : all) longest = std::max(longest, page.timeline.ranks[index].slots.size());
  // Rows that are too long on their own are left out rather than cut, which would look like a shorter step.
  const bool too_long = std::min<std::size_t>(2, all.size()) * longest > kMostSlots;
  const std::vector<std::size_t> shown = too_long ? std::vector<std::size_t>{} : thinned(all, longest);
  Operations operations(page.job);
  Parts parts(page);
  Json rows = Json::array();
  for (const std::size_t index : shown) rows.push_back(row_json(page, index, operations, parts));
  Json json = {{"ticks_per_step", kTicks},
               {"rows", std::move(rows)},
               {"simulated_ranks", page.job.ranks.size()},
               {"stages", page.summary.plan.pipeline_parallel}};
  json["operations"] = operations.lists();
  json["parts"] = parts.json();
  return json;
}

}  // namespace trainsim::report
