// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "sim/report/format.hpp"
#include "sim/report/sweep_points.hpp"
#include "sim/report/sweep_rows.hpp"
#include "sim/report/training.hpp"
#include "sim/sweep/row_axes.hpp"
#include "sim/training/duration_text.hpp"

namespace trainsim::report {

namespace {

using sweep::Row;

/// Lines are wrapped to this.
constexpr std::size_t kTextWidth = 110;
/// Varied values are cut to this in the table.
constexpr std::size_t kValueWidth = 32;
/// And the reason why a point is not legal to this; rows have all of it.
constexpr std::size_t kErrorWidth = 90;

constexpr const char* kRunDays = "run_days";

/// Lines of cells, padded to columns; a line may have fewer cells, of which the last is not padded.
using Lines = std::vector<std::vector<std::string>>;

/// Text cut to a width; no UTF-8 character is cut in two.
std::string shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

/// A result that the table shows.
struct Column {
  const char* title;
  std::string (*text)(const Row&);
};

constexpr std::array<Column, 5> kOfStep = {
    {{"step time", [](const Row& row) { return duration(number_in(row, "step_time_s")); }},
     {"tokens/s/GPU", [](const Row& row) { return number(rate(row)); }},
     {"MFU", [](const Row& row) { return percent(number_in(row, "mfu")); }},
     {"bubble", [](const Row& row) { return percent(number_in(row, "bubble_ratio")); }},
     {"peak memory",
      [](const Row& row) { return gib(static_cast<Bytes>(number_in(row, "peak_memory_bytes"))); }}}};
constexpr Column kVerdict = {"memory", [](const Row& row) { return text_in(row, "verdict"); }};

/// A column of the whole run, and that of the rows which it shows.
struct RunColumn {
  const char* source;
  Column column;
};

std::string run_time(const Row& row) {
  return training::duration_text(number_in(row, kRunDays) * kSecondsPerDay);
}

constexpr std::array<RunColumn, 6> kOfRun = {
    {{kRunDays, {"run", run_time}},
     {"run_goodput", {"goodput", [](const Row& row) { return percent(number_in(row, "run_goodput")); }}},
     {"run_gpu_hours",
      {"GPU-hours", [](const Row& row) { return gpu_hours_text(number_in(row, "run_gpu_hours")); }}},
     {"run_cost",
      {"cost",
       [](const Row& row) {
         return count(number_in(row, "run_cost")) + " " + text_in(row, "run_currency");
       }}},
     {"run_energy_kwh",
      {"energy", [](const Row& row) { return energy_text(number_in(row, "run_energy_kwh")); }}},
     {"run_co2_kg", {"CO2", [](const Row& row) { return co2_text(number_in(row, "run_co2_kg")); }}}}};

bool has_number(const Row& row, const char* column) {
  return !text_in(row, column).empty();
}

/// Whether rows differ in keys of the section `run` only, and so have one step.
bool has_one_step(const std::vector<Row>& rows) {
  const std::vector<std::string> keys = sweep::keys_of(rows.front());
  return std::all_of(keys.begin(), keys.end(),
                     [](const std::string& key) { return key == "run" || key.starts_with("run."); });
}

/// What the table shows behind the varied values: only what rows have, and of one step nothing but whether it
/// fits.
std::vector<Column> columns_of(const std::vector<Row>& rows) {
  std::vector<Column> columns;
  columns.reserve(kOfStep.size() + kOfRun.size() + 1);
  if (!has_one_step(rows)) columns.insert(columns.end(), kOfStep.begin(), kOfStep.end());
  for (const RunColumn& each : kOfRun) {
    const bool known = std::any_of(rows.begin(), rows.end(),
                                   [&each](const Row& row) { return has_number(row, each.source); });
    if (known) columns.push_back(each.column);
  }
  columns.push_back(kVerdict);
  return columns;
}

std::vector<std::string> result_cells(const Row& row, const std::vector<Column>& columns) {
  if (!is_valid(row)) return {shortened(text_in(row, sweep::kError), kErrorWidth)};
  std::vector<std::string> cells(columns.size());
  std::transform(columns.begin(), columns.end(), cells.begin(),
                 [&row](const Column& column) { return column.text(row); });
  return cells;
}

Lines table_lines(const std::vector<Row>& rows) {
  const std::vector<std::string> keys = sweep::keys_of(rows.front());
  const std::vector<Column> columns = columns_of(rows);
  Lines lines = {keys};
  for (const Column& column : columns) lines.front().emplace_back(column.title);
  for (const Row& row : rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const std::string& key : keys) line.push_back(shortened(text_in(row, key), kValueWidth));
    const std::vector<std::string> results = result_cells(row, columns);
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
  if (has_one_step(rows)) return "";
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (fits(row) && (best == nullptr || rate(row) > rate(*best))) best = &row;
  }
  if (best == nullptr) return "";
  return "Most tokens/s per GPU of what fits: " + point_text(*best) + " with " + number(rate(*best)) + " (" +
         duration(number_in(*best, "step_time_s")) + " per step).";
}

/// The shortest run; nothing where all take as long.
std::string run_note(const std::vector<Row>& rows) {
  std::vector<const Row*> runs;
  for (const Row& row : rows) {
    if (fits(row) && has_number(row, kRunDays)) runs.push_back(&row);
  }
  const auto shorter = [](const Row* a, const Row* b) {
    return number_in(*a, kRunDays) < number_in(*b, kRunDays);
  };
  const auto [best, worst] = std::minmax_element(runs.begin(), runs.end(), shorter);
  if (runs.empty() || !shorter(*best, *worst)) return "";
  const double goodput = number_in(**best, "run_goodput");
  return "Shortest run of what fits: " + point_text(**best) + " with " + run_time(**best) + " and " +
         gpu_hours_text(number_in(**best, "run_gpu_hours")) + " GPU-hours" +
         (goodput < 1 ? " at a goodput of " + percent(goodput) : "") + ".";
}

std::string invalid_note(const std::vector<Row>& rows) {
  const auto invalid = rows.size() - std::count_if(rows.begin(), rows.end(), is_valid);
  if (invalid == 0) return "";
  return std::to_string(invalid) + " of " + std::to_string(rows.size()) +
         " points are not legal; their rows say why.";
}

}  // namespace

std::vector<std::string> sweep_notes(const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  std::vector<std::string> notes = {fastest_note(rows), run_note(rows)};
  // What has one value in all rows is no axis.
  const std::vector<sweep::RowAxis> axes = sweep::axes_of(rows);
  if (axes.size() == 1 && axes.front().keys.size() == 1 && is_batch_size(axes.front().keys.front())) {
    std::vector<const Row*> all(rows.size());
    std::transform(rows.begin(), rows.end(), all.begin(), [](const Row& row) { return &row; });
    for (std::string& sentence : batch_curve(axes.front().keys.front(), all).sentences)
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
