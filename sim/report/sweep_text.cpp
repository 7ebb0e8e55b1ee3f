// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "sim/report/format.hpp"
#include "sim/report/sweep_rows.hpp"
#include "sim/sweep/knee.hpp"

namespace trainsim::report {

namespace {

using sweep::Cell;
using sweep::Row;

/// Lines are wrapped to this.
constexpr std::size_t kTextWidth = 110;
/// Varied values are cut to this in the table.
constexpr std::size_t kValueWidth = 32;
/// And the reason why a point is not legal to this; rows have all of it.
constexpr std::size_t kErrorWidth = 90;

/// A number of a row; 0 where there is none.
double number_in(const Row& row, std::string_view column) {
  const Cell* cell = find(row, column);
  return cell == nullptr ? 0 : std::strtod(cell->text.c_str(), nullptr);
}

std::string text_in(const Row& row, std::string_view column) {
  const Cell* cell = find(row, column);
  return cell == nullptr ? "" : cell->text;
}

bool is_valid(const Row& row) {
  return text_in(row, sweep::kError).empty();
}

bool fits(const Row& row) {
  return is_valid(row) && text_in(row, "fits") == "true";
}

double rate(const Row& row) {
  return number_in(row, "tokens_per_s_per_gpu");
}

/// The columns before the results.
std::vector<std::string> keys_of(const Row& row) {
  std::vector<std::string> keys;
  for (const Cell& cell : row) {
    if (cell.column == sweep::kFirstResult) break;
    keys.push_back(cell.column);
  }
  return keys;
}

/// "plan.micro_batch_size=2, gpus=64".
std::string point_text(const Row& row) {
  std::string text;
  for (const std::string& key : keys_of(row)) {
    if (!text.empty()) text += ", ";
    text += key;
    text += "=" + text_in(row, key);
  }
  return text;
}

/// Lines of cells, padded to columns; a line may have fewer cells, of which the last is not padded.
using Lines = std::vector<std::vector<std::string>>;

/// Text cut to a width; no UTF-8 character is cut in two.
std::string shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

/// What the table shows behind the varied values.
std::vector<std::string> result_cells(const Row& row) {
  if (!is_valid(row)) return {shortened(text_in(row, sweep::kError), kErrorWidth)};
  return {duration(number_in(row, "step_time_s")),
          number(rate(row)),
          percent(number_in(row, "mfu")),
          percent(number_in(row, "bubble_ratio")),
          gib(static_cast<Bytes>(number_in(row, "peak_memory_bytes"))),
          text_in(row, "verdict")};
}

Lines table_lines(const std::vector<Row>& rows) {
  const std::vector<std::string> keys = keys_of(rows.front());
  Lines lines = {keys};
  for (const char* title : {"step time", "tokens/s/GPU", "MFU", "bubble", "peak memory", "memory"})
    lines.front().emplace_back(title);
  for (const Row& row : rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const std::string& key : keys) line.push_back(shortened(text_in(row, key), kValueWidth));
    const std::vector<std::string> results = result_cells(row);
    line.insert(line.end(), results.begin(), results.end());
  }
  return lines;
}

/// Widths of the columns; the last cells of lines, which are texts, don't count.
std::vector<std::size_t> widths_of(const Lines& lines) {
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t c = 0; c + 1 < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  return widths;
}

std::string table(const std::vector<Row>& rows) {
  const Lines lines = table_lines(rows);
  const std::vector<std::size_t> widths = widths_of(lines);
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      text += "  ";
      text += c + 1 < line.size() ? pad_left(line[c], widths[c]) : line[c];
    }
    text += "\n";
  }
  return text;
}

std::string fastest_note(const std::vector<Row>& rows) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (fits(row) && (best == nullptr || rate(row) > rate(*best))) best = &row;
  }
  if (best == nullptr) return "";
  return "Most tokens/s per GPU of what fits: " + point_text(*best) + " with " + number(rate(*best)) + " (" +
         duration(number_in(*best, "step_time_s")) + " per step).";
}

std::string invalid_note(const std::vector<Row>& rows) {
  const auto invalid = rows.size() - std::count_if(rows.begin(), rows.end(), is_valid);
  if (invalid == 0) return "";
  return std::to_string(invalid) + " of " + std::to_string(rows.size()) +
         " points are not legal; their rows say why.";
}

/// A sweep over one of the sizes that make up the batch.
struct BatchSweep {
  std::string key;
  /// Valid rows by size.
  std::vector<const Row*> rows;
};

double size_in(const BatchSweep& sweep, const Row& row) {
  return number_in(row, sweep.key == "plan.micro_batch_size" ? "micro_batch_size" : "global_batch_size");
}

/// "plan.micro_batch_size = 2", or "m = 48 micro-batches (plan.global_batch_size = 768)".
std::string size_text(const BatchSweep& sweep, const Row& row) {
  std::string value = sweep.key + " = " + text_in(row, sweep.key);
  if (sweep.key == "plan.micro_batch_size") return value;
  const double unit = number_in(row, "micro_batch_size") * number_in(row, "data_parallel");
  const std::int64_t count = std::llround(number_in(row, "global_batch_size") / unit);
  return "m = " + std::to_string(count) + " micro-batches (" + value + ")";
}

std::optional<BatchSweep> batch_sweep(const std::vector<Row>& rows) {
  const std::vector<std::string> keys = rows.empty() ? std::vector<std::string>{} : keys_of(rows.front());
  const std::vector<std::string> sizes = {"plan.micro_batch_size", "plan.global_batch_size",
                                          "plan.gradient_accumulation"};
  if (keys.size() != 1 || std::find(sizes.begin(), sizes.end(), keys.front()) == sizes.end())
    return std::nullopt;
  BatchSweep sweep{keys.front(), {}};
  for (const Row& row : rows) {
    if (is_valid(row)) sweep.rows.push_back(&row);
  }
  std::sort(sweep.rows.begin(), sweep.rows.end(),
            [&sweep](const Row* a, const Row* b) { return size_in(sweep, *a) < size_in(sweep, *b); });
  return sweep;
}

std::string knee_note(const BatchSweep& batch) {
  std::vector<const Row*> fitting;
  std::vector<sweep::Trial> trials;
  for (const Row* row : batch.rows) {
    if (!fits(*row)) continue;
    fitting.push_back(row);
    trials.push_back({size_in(batch, *row), rate(*row)});
  }
  if (trials.size() < 2) return "";
  const std::optional<sweep::Trial> knee = sweep::find_knee(trials);
  if (!knee) {
    const double gain = sweep::gain_per_doubling(trials[trials.size() - 2], trials.back());
    return "No knee up to " + size_text(batch, *fitting.back()) +
           ", the largest here that fits: a doubling still gains " + percent(gain) + " in tokens/s per GPU.";
  }
  const auto at = std::find_if(fitting.begin(), fitting.end(),
                               [&](const Row* row) { return size_in(batch, *row) == knee->size; });
  return "Beyond " + size_text(batch, **at) + " a doubling gains under " +
         number(100 * sweep::kSmallGain, 1) + " % in tokens/s per GPU.";
}

/// What keeps a row that does not fit from it: "needs 2.50 GiB more".
std::string lack(const Row& row) {
  const double headroom = number_in(row, "memory_headroom_bytes");
  // What fits into the GPU may offload more than the host holds.
  if (headroom >= 0) return "offloads more than the host holds";
  return "needs " + gib(static_cast<Bytes>(-headroom)) + " more than a GPU has";
}

std::string memory_note(const BatchSweep& batch) {
  if (batch.rows.empty()) return "";
  const auto largest =
      std::find_if(batch.rows.rbegin(), batch.rows.rend(), [](const Row* row) { return fits(*row); });
  if (largest == batch.rows.rend()) {
    const Row& smallest = *batch.rows.front();
    return "Nothing fits into memory: even " + size_text(batch, smallest) + " " + lack(smallest) + ".";
  }
  const std::string most = size_text(batch, **largest);
  if (largest == batch.rows.rbegin())
    return "Memory is no limit here: " + most + ", the largest, leaves " +
           gib(static_cast<Bytes>(number_in(**largest, "memory_headroom_bytes"))) + ".";
  const Row& next = **std::prev(largest);
  return "Memory limit: " + most + " is the largest that fits; " + size_text(batch, next) + " " + lack(next) +
         ".";
}

}  // namespace

std::vector<std::string> sweep_notes(const std::vector<Row>& rows) {
  std::vector<std::string> notes = {fastest_note(rows)};
  if (const std::optional<BatchSweep> batch = batch_sweep(rows)) {
    notes.push_back(knee_note(*batch));
    notes.push_back(memory_note(*batch));
  }
  notes.push_back(invalid_note(rows));
  std::erase(notes, "");
  return notes;
}

std::string sweep_text(const std::vector<Row>& rows) {
  if (rows.empty()) return "There are no points.\n";
  std::string text = table(rows) + "\n";
  for (const std::string& note : sweep_notes(rows)) text += "  - " + wrap(note, kTextWidth - 4, 4) + "\n";
  return text;
}

}  // namespace trainsim::report
