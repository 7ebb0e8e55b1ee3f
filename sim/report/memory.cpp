// SPDX-License-Identifier: Apache-2.0
#include "sim/report/memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/report/format.hpp"
#include "sim/report/json_dump.hpp"

namespace trainsim::report {

namespace {

constexpr std::size_t kTextWidth = 110;
constexpr std::size_t kLabelWidth = 42;
/// Rows of the table of tensors, and columns of the curve.
constexpr std::size_t kTensorRows = 16;
constexpr std::size_t kCurveColumns = 64;
constexpr std::size_t kStageRows = 16;

const RankSummary& rank_of(const MemoryReport& report) {
  return report.summary.ranks[report.rank];
}

const StageMemory& memory_of(const MemoryReport& report) {
  return report.summary.stage_memory[rank_of(report).memory];
}

std::string share_of(Bytes part, Bytes whole) {
  return percent(whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
}

/// "layer 12: qkv output" as "qkv output", and "optimizer moments, part 3" as "optimizer moments".
std::string kind_name(std::string name) {
  name = name.substr(0, name.find(", part "));
  const bool numbered = name.starts_with("layer ") || name.starts_with("unit ");
  const std::size_t colon = name.find(": ");
  return numbered && colon != std::string::npos ? name.substr(colon + 2) : name;
}

std::string head(const MemoryReport& report) {
  const Summary& summary = report.summary;
  const RankSummary& rank = rank_of(report);
  std::string text = summary.name + ": memory of rank " + std::to_string(report.rank_id) + " (stage " +
                     std::to_string(rank.stage) + ", one of " + std::to_string(rank.represents) + " alike)\n";
  const auto row = [&text](const std::string& label, const std::string& value) {
    text += "  " + pad_right(label, 20) + wrap(value, kTextWidth - 22, 22) + "\n";
  };
  const Bytes headroom = summary.memory_capacity - summary.memory_reserve - rank.peak_memory;
  row("peak", gib(rank.peak_memory) + " after " + duration(rank.peak_time) + ", " + peak_words(rank.peak_at));
  row("reserved", gib(reserved_by(rank)) + " by the caching allocator, " +
                      share_of(reserved_by(rank) - rank.peak_memory, reserved_by(rank)) +
                      " of it unused at the peak" + retries_text(summary));
  row("available", gib(summary.memory_capacity) + " less " + gib(summary.memory_reserve) +
                       " for contexts and libraries: " +
                       (headroom >= 0 ? gib(headroom) + " left" : gib(-headroom) + " too much"));
  const RankSummary& fullest = fullest_rank(summary);
  row("verdict", std::string(to_string(summary.verdict)) + ", rank " + std::to_string(fullest.rank) +
                     " being the fullest: " +
                     verdict_reason(fullest.peak_memory, reserved_by(fullest),
                                    summary.memory_capacity - summary.memory_reserve));
  if (!report.chosen.empty()) row("recomputation", report.chosen);
  return text;
}

std::string category_table(const MemoryReport& report) {
  const RankSummary& rank = rank_of(report);
  const StageMemory& memory = memory_of(report);
  std::string text = "\n" + pad_right("By category", kLabelWidth + 2) + pad_left("at the peak", 12) +
                     pad_left("share", 9) + pad_left("at its most", 14) + "\n";
  for (std::size_t c = 0; c < rank.memory_at_peak.size(); ++c) {
    if (memory.largest[c] == 0) continue;
    text += "  " +
            pad_right(words(program::to_string(static_cast<program::MemoryCategory>(c))), kLabelWidth) +
            pad_left(gib(rank.memory_at_peak[c]), 12) +
            pad_left(share_of(rank.memory_at_peak[c], rank.peak_memory), 9) +
            pad_left(gib(memory.largest[c]), 14) + "\n";
  }
  return text;
}

std::string tensor_table(const MemoryReport& report) {
  const std::vector<TensorKind> kinds = kinds_of(memory_of(report).tensors);
  std::string text = "\n" + pad_right("Alive at the peak", kLabelWidth + 2) + pad_left("bytes", 12) +
                     pad_left("share", 9) + pad_left("tensors", 10) + "  category\n";
  for (std::size_t i = 0; i < std::min(kTensorRows, kinds.size()); ++i) {
    const TensorKind& kind = kinds[i];
    text += "  " + pad_right(kind.name, kLabelWidth) + pad_left(gib(kind.bytes), 12) +
            pad_left(share_of(kind.bytes, rank_of(report).peak_memory), 9) +
            pad_left(std::to_string(kind.count), 10) + "  " + words(program::to_string(kind.category)) + "\n";
  }
  if (kinds.size() > kTensorRows) {
    text += "  … " + std::to_string(kinds.size() - kTensorRows) +
            " more kinds; the JSON output has every tensor\n";
  }
  return text;
}

std::string curve_lines(const MemoryReport& report) {
  static constexpr std::array<const char*, 9> bars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const Bytes most = rank_of(report).peak_memory;
  std::string bar;
  for (const Bytes bytes : columns_of(memory_of(report), report.summary.step_time, kCurveColumns)) {
    const double share = static_cast<double>(bytes) / static_cast<double>(most);
    bar += bars.at(static_cast<std::size_t>(std::lround(8.0 * share)));
  }
  return "\nOver the step of " + duration(report.summary.step_time) + " (full height: " + gib(most) +
         ")\n  |" + bar + "|\n";
}

std::string stage_table(const MemoryReport& report) {
  std::string text = "\nAll stages\n  stage   rank  ranks   allocated    reserved  peak in\n";
  const std::vector<RankSummary>& ranks = report.summary.ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > kStageRows && i == kStageRows / 2) {
      text += "    …  " + std::to_string(ranks.size() - kStageRows) + " more rows in the JSON output\n";
      i = ranks.size() - kStageRows / 2;
    }
    const RankSummary& rank = ranks[i];
    text += "  " + pad_left(std::to_string(rank.stage), 5) + pad_left(std::to_string(rank.rank), 7) +
            pad_left(std::to_string(rank.represents), 7) + pad_left(gib(rank.peak_memory), 12) +
            pad_left(gib(reserved_by(rank)), 12) + "  " + rank.peak_at + "\n";
  }
  return text;
}

std::string change_lines(const MemoryReport& report) {
  if (report.summary.changes.empty()) return "";
  std::string text = "\nChanges, each simulated\n";
  for (const MemoryChange& change : report.summary.changes) {
    text += "  - " + wrap(change_text(change), kTextWidth - 4, 4) + "\n";
  }
  return text;
}

std::string answer_lines(const MemoryReport& report) {
  std::string text;
  for (const FleetAnswer& answer : report.answers) {
    text += "\n" + answer.question + ": " + (answer.value > 0 ? std::to_string(answer.value) + " " : "") +
            answer.note + "\n";
  }
  return text;
}

Json curve_json(const StageMemory& memory) {
  Json list = Json::array();
  for (const MemorySpan& span : memory.curve) {
    list.push_back({{"begin_s", span.begin},
                    {"end_s", span.end},
                    {"slot", span.slot},
                    {"begin_bytes", span.at_begin},
                    {"peak_bytes", span.peak},
                    {"end_bytes", span.at_end}});
  }
  return list;
}

Json tensors_json(const StageMemory& memory) {
  Json list = Json::array();
  for (const memory::LiveTensor& tensor : memory.tensors) {
    list.push_back({{"name", tensor.name},
                    {"category", program::to_string(tensor.category)},
                    {"micro_batch", tensor.micro_batch >= 0 ? Json(tensor.micro_batch) : Json(nullptr)},
                    {"bytes", tensor.bytes}});
  }
  return list;
}

Json stages_json(const MemoryReport& report) {
  Json list = Json::array();
  for (const RankSummary& rank : report.summary.ranks) {
    list.push_back({{"rank", rank.rank},
                    {"represents", rank.represents},
                    {"stage", rank.stage},
                    {"peak_memory_bytes", rank.peak_memory},
                    {"peak_reserved_bytes", reserved_by(rank)},
                    {"peak_at", rank.peak_at}});
  }
  return list;
}

Json answers_json(const MemoryReport& report) {
  Json list = Json::array();
  for (const FleetAnswer& answer : report.answers)
    list.push_back({{"question", answer.question}, {"value", answer.value}, {"note", answer.note}});
  return list;
}

Json changes_json(const Summary& summary) {
  Json list = Json::array();
  for (const MemoryChange& change : summary.changes) {
    list.push_back({{"set", change.overrides},
                    {"verdict", to_string(change.verdict)},
                    {"peak_memory_bytes", change.peak_memory},
                    {"peak_reserved_bytes", change.peak_reserved},
                    {"memory_headroom_bytes", change.headroom},
                    {"relative_step_time", change.relative_step_time}});
  }
  return list;
}

}  // namespace

std::string peak_words(const std::string& peak_at) {
  return (peak_at.starts_with("outside") ? "" : "in the ") + peak_at;
}

std::vector<TensorKind> kinds_of(const std::vector<memory::LiveTensor>& tensors) {
  std::map<std::pair<std::string, program::MemoryCategory>, TensorKind> kinds;
  for (const memory::LiveTensor& tensor : tensors) {
    const std::string name = kind_name(tensor.name);
    TensorKind& kind = kinds[{name, tensor.category}];
    kind.name = name;
    kind.category = tensor.category;
    ++kind.count;
    kind.bytes += tensor.bytes;
  }
  std::vector<TensorKind> result(kinds.size());
  std::transform(kinds.begin(), kinds.end(), result.begin(), [](const auto& entry) { return entry.second; });
  std::stable_sort(result.begin(), result.end(),
                   [](const TensorKind& a, const TensorKind& b) { return a.bytes > b.bytes; });
  return result;
}

std::vector<Bytes> columns_of(const StageMemory& memory, Seconds step, std::size_t columns_wanted) {
  std::vector<Bytes> columns(columns_wanted, 0);
  const auto column = [step, columns_wanted](Seconds time) {
    const auto at = static_cast<std::size_t>(time / step * static_cast<double>(columns_wanted));
    return std::min(at, columns_wanted - 1);
  };
  for (const MemorySpan& span : memory.curve) {
    for (std::size_t c = column(span.begin); c <= column(span.end); ++c)
      columns[c] = std::max(columns[c], span.peak);
  }
  return columns;
}

std::string change_text(const MemoryChange& change) {
  std::string text;
  for (const std::string& override_text : change.overrides)
    text += (text.empty() ? "" : ", ") + override_text;
  text += std::string(": ") + to_string(change.verdict) + ", " +
          verdict_reason(change.peak_memory, change.peak_reserved, change.peak_memory + change.headroom);
  const double cost = change.relative_step_time - 1.0;
  if (std::abs(cost) < 5e-4) return text + ", at the same step time";
  return text +
         (cost > 0 ? ", costs " + percent(cost) + " step time" : ", saves " + percent(-cost) + " step time");
}

std::string to_text(const MemoryReport& report) {
  return head(report) + category_table(report) + tensor_table(report) + curve_lines(report) +
         stage_table(report) + change_lines(report) + answer_lines(report);
}

std::string to_json(const MemoryReport& report) {
  const Summary& summary = report.summary;
  const RankSummary& rank = rank_of(report);
  const StageMemory& memory = memory_of(report);
  Json json = {{"schema", 1},
               {"name", summary.name},
               {"rank", report.rank_id},
               {"stage", rank.stage},
               {"verdict", to_string(summary.verdict)},
               {"fits", summary.fits},
               {"peak_memory_bytes", rank.peak_memory},
               {"peak_reserved_bytes", reserved_by(rank)},
               {"peak_at", rank.peak_at},
               {"peak_time_s", rank.peak_time},
               {"memory_capacity_bytes", summary.memory_capacity},
               {"memory_reserve_bytes", summary.memory_reserve},
               {"memory_at_peak", by_category(rank.memory_at_peak, summary.model.experts.active())},
               {"memory_at_most", by_category(memory.largest, summary.model.experts.active())},
               {"step_time_s", summary.step_time},
               {"tensors_at_peak", tensors_json(memory)},
               {"curve", curve_json(memory)},
               {"ranks", stages_json(report)}};
  json["chosen"] = report.chosen;
  json["changes"] = changes_json(summary);
  json["answers"] = answers_json(report);
  return dump(json);
}

}  // namespace trainsim::report
