// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "sim/report/format.hpp"
#include "sim/report/sweep_points.hpp"
#include "sim/report/sweep_rows.hpp"
#include "sim/sweep/row_axes.hpp"

namespace trainsim::report {

namespace {

using sweep::Row;

/// Lines are wrapped to this.
constexpr std::size_t kTextWidth = 110;
/// Varied values are cut to this in the table.
constexpr std::size_t kValueWidth = 32;
/// And the reason why a point is not legal to this; rows have all of it.
constexpr std::size_t kErrorWidth = 90;

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
  const std::vector<std::string> keys = sweep::keys_of(rows.front());
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

}  // namespace

std::vector<std::string> sweep_notes(const std::vector<Row>& rows) {
  std::vector<std::string> notes = {fastest_note(rows)};
  const std::vector<std::string> keys =
      rows.empty() ? std::vector<std::string>{} : sweep::keys_of(rows.front());
  if (keys.size() == 1 && is_batch_size(keys.front())) {
    std::vector<const Row*> all(rows.size());
    std::transform(rows.begin(), rows.end(), all.begin(), [](const Row& row) { return &row; });
    for (std::string& sentence : batch_curve(keys.front(), all).sentences)
      notes.push_back(std::move(sentence));
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
