// SPDX-License-Identifier: Apache-2.0
// Comparisons for programs: JSON and CSV.
#include <string>
#include <utility>
#include <vector>

#include "sim/report/comparison.hpp"
#include "sim/report/csv_cells.hpp"
#include "sim/report/difference_json.hpp"

namespace trainsim::report {

namespace {

/// A row of a CSV file, cell by cell with its column.
using Row = std::vector<std::pair<std::string, std::string>>;

Row figures_row(const ComparedRun& run) {
  const Figures& figures = run.figures;
  Row row = {{"run", figures.name},
             {"label", cell(run.label)},
             {"model", cell(figures.model)},
             {"gpus", std::to_string(figures.gpus)},
             {"tokens", exact(figures.tokens)},
             {"step_time_s", exact(figures.step_time)},
             {"tokens_per_s", exact(figures.tokens_per_second)},
             {"mfu", exact(figures.mfu)},
             {"hfu", exact(figures.hfu)},
             {"bubble_ratio", exact(figures.bubble_ratio)},
             {"scaling_efficiency", exact(figures.scaling_efficiency)},
             {"verdict", to_string(figures.verdict)},
             {"peak_memory_bytes", std::to_string(figures.peak_memory)}};
  return row;
}

std::string change_column(const char* name, const char* unit) {
  return std::string("change_") + name + unit;
}

void add_change(Row& row, const Difference& difference) {
  row.emplace_back("change_per", difference.per_token ? "token" : "step");
  row.emplace_back("change_time_s", exact(difference.time));
  row.emplace_back("change_share", exact(difference.share()));
  for (std::size_t c = 0; c < difference.by_cause.size(); ++c) {
    row.emplace_back(change_column(program::to_string(static_cast<program::Cause>(c)), "_s"),
                     exact(difference.by_cause[c]));
  }
  row.emplace_back("change_peak_memory_bytes", std::to_string(difference.memory));
  for (std::size_t c = 0; c < difference.by_category.size(); ++c) {
    row.emplace_back(change_column(program::to_string(static_cast<program::MemoryCategory>(c)), "_bytes"),
                     std::to_string(difference.by_category[c]));
  }
}

/// The first run does not differ from itself in any draw.
void add_interval(Row& row, const ComparedRun& run) {
  const DifferenceInterval interval = run.interval.value_or(DifferenceInterval{});
  row.emplace_back("change_share_low", exact(interval.low));
  row.emplace_back("change_share_high", exact(interval.high));
}

/// Column names, or the cells below them, separated by commas.
std::string csv_line(const Row& row, std::string std::pair<std::string, std::string>::*part) {
  std::string text;
  for (const auto& column : row) {
    if (!text.empty()) text += ",";
    text += column.*part;
  }
  return text + "\n";
}

Json interval_json(const DifferenceInterval& interval) {
  return {{"samples", interval.samples},
          {"seed", interval.seed},
          {"share_low", interval.low},
          {"share_high", interval.high},
          {"same_way", interval.same_way}};
}

}  // namespace

Json inputs_json(const Comparison& comparison) {
  Json list = Json::array();
  for (const InputDifference& row : input_differences(comparison.runs)) {
    Json values = Json::array();
    for (const std::string& value : row.values) values.push_back(value.empty() ? Json(nullptr) : Json(value));
    list.push_back({{"key", row.key}, {"values", std::move(values)}});
  }
  return list;
}

Json difference_json(const Difference& difference) {
  Json breakdown = Json::object();
  for (std::size_t c = 0; c < difference.by_cause.size(); ++c) {
    breakdown[program::to_string(static_cast<program::Cause>(c))] = {
        {"change_s", difference.by_cause[c]}, {"share", difference.by_cause[c] / difference.base}};
  }
  return {{"from", difference.from.name},
          {"to", difference.to.name},
          {"per", difference.per_token ? "token" : "step"},
          {"from_s", difference.base},
          {"change_s", difference.time},
          {"share", difference.share()},
          {"breakdown", std::move(breakdown)},
          {"change_bytes", difference.memory},
          {"memory_at_peak", by_category(difference.by_category, true)},
          {"sentences", sentences(difference)}};
}

std::string to_json(const Comparison& comparison) {
  Json runs = Json::array();
  Json differences = Json::array();
  for (const ComparedRun& run : comparison.runs) {
    runs.push_back({{"run", run.figures.name},
                    {"label", run.label},
                    {"set", run.overrides},
                    {"result", Json::parse(run.json)}});
    if (&run == &comparison.runs.front()) continue;
    Json moved = difference_json(difference(comparison.runs.front().figures, run.figures));
    if (run.interval) {
      moved["uncertainty"] = interval_json(*run.interval);
      moved["sentences"] =
          difference_sentences(difference(comparison.runs.front().figures, run.figures), run);
    }
    differences.push_back(std::move(moved));
  }
  return dump({{"schema", 1},
               {"runs", std::move(runs)},
               {"inputs", inputs_json(comparison)},
               {"differences", std::move(differences)}});
}

std::string with_what_if(const std::string& text, const Comparison& comparison) {
  Json json = Json::parse(text);
  Json list = Json::array();
  for (std::size_t r = 1; r < comparison.runs.size(); ++r) {
    const ComparedRun& run = comparison.runs[r];
    list.push_back({{"change", run.label},
                    {"set", run.overrides},
                    {"difference", difference_json(difference(comparison.runs.front().figures, run.figures))},
                    {"result", Json::parse(run.json)}});
  }
  json["what_if"] = std::move(list);
  return dump(json);
}

std::string to_csv(const Comparison& comparison) {
  const bool with_intervals = comparison.runs.back().interval.has_value();
  std::string text;
  for (const ComparedRun& run : comparison.runs) {
    Row row = figures_row(run);
    add_change(row, difference(comparison.runs.front().figures, run.figures));
    if (with_intervals) add_interval(row, run);
    if (text.empty()) text = csv_line(row, &Row::value_type::first);
    text += csv_line(row, &Row::value_type::second);
  }
  return text;
}

}  // namespace trainsim::report
