// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/plan_list.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/config/parser.hpp"
#include "sim/config/report.hpp"
#include "sim/config/source.hpp"
#include "sim/config/value.hpp"
#include "sim/sweep/csv_line.hpp"

namespace trainsim::sweep {

namespace {

using config::Entry;
using config::Kind;
using config::Position;
using config::Value;

/// Keys at the top of a configuration; other names belong to the plan.
constexpr std::array<std::string_view, 8> kTopLevel = {"model",    "cluster", "gpus",       "plan",
                                                       "software", "memory",  "simulation", "description"};
/// Sections whose keys are varied one by one; anything deeper is a value.
constexpr std::array<std::string_view, 6> kSections = {"model",    "cluster", "plan",
                                                       "software", "memory",  "simulation"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string full_key(const std::string& key) {
  const std::string_view first = std::string_view(key).substr(0, key.find('.'));
  return contains(kTopLevel, first) ? key : config::join_path("plan", key);
}

/// Collects rows whose keys may differ.
class PlanTable {
 public:
  void begin_row() { axis_.rows.emplace_back(axis_.keys.size()); }

  /// Sets a key in the last row; false if the row has it already.
  bool set(const std::string& key, std::string text) {
    const auto found = std::find(axis_.keys.begin(), axis_.keys.end(), key);
    const auto column = static_cast<std::size_t>(found - axis_.keys.begin());
    if (found == axis_.keys.end()) axis_.keys.push_back(key);
    std::vector<std::optional<std::string>>& row = axis_.rows.back();
    row.resize(axis_.keys.size());
    if (row[column]) return false;
    row[column] = std::move(text);
    return true;
  }

  Axis take() {
    for (auto& row : axis_.rows) row.resize(axis_.keys.size());
    return std::move(axis_);
  }

 private:
  Axis axis_;
};

void add_entry(const Entry& entry, const std::string& key, PlanTable& table, config::Report& report) {
  if (entry.value.kind == Kind::kMap && contains(kSections, key)) {
    for (const Entry& inner : entry.value.entries)
      add_entry(inner, config::join_path(key, inner.key), table, report);
    return;
  }
  const std::string full = full_key(key);
  if (!table.set(full, config::flow_text(entry.value)))
    report.add(entry.at, full, "is given twice in this plan; remove one");
}

void read_yaml(const std::shared_ptr<const config::Source>& source, PlanTable& table,
               config::Report& report) {
  const std::optional<Value> root = config::parse(source, source->text(), report);
  if (!root) return;
  if (root->kind != Kind::kList) {
    report.add(
        root->at, "",
        "a list of plans is needed here ('- tensor_parallel: 8' and so on), not " + config::describe(*root));
    return;
  }
  for (const Value& plan : root->items) {
    if (plan.kind != Kind::kMap || plan.entries.empty()) {
      report.add(plan.at, "",
                 "a plan is a mapping such as {tensor_parallel: 8}, not " +
                     (plan.kind == Kind::kMap ? "an empty one" : config::describe(plan)));
      continue;
    }
    table.begin_row();
    for (const Entry& entry : plan.entries) add_entry(entry, entry.key, table, report);
  }
}

void read_csv(const std::shared_ptr<const config::Source>& source, PlanTable& table, config::Report& report) {
  const std::string& text = source->text();
  const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  std::vector<std::string> header;
  for (int number = 1; number <= lines; ++number) {
    const std::string_view line = source->line(number);
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> cells = split_csv_line(line);
    const Position at{source, number, 1};
    if (header.empty()) {
      header = cells;
      if (std::find(header.begin(), header.end(), "") != header.end())
        report.add(at, "", "a column has no name; name a key such as plan.tensor_parallel");
    } else if (cells.size() != header.size()) {
      report.add(at, "",
                 "the line has " + std::to_string(cells.size()) + " cells, but the header names " +
                     std::to_string(header.size()) + " columns");
    } else {
      table.begin_row();
      for (std::size_t c = 0; c < cells.size(); ++c) {
        if (cells[c].empty() || header[c].empty()) continue;
        if (!table.set(full_key(header[c]), cells[c]))
          report.add(at, full_key(header[c]), "is a column twice; remove one");
      }
    }
  }
}

}  // namespace

Axis read_plans(const std::filesystem::path& file) {
  config::Report report;
  PlanTable table;
  const std::shared_ptr<const config::Source> source = config::read_source(file, 0, report);
  report.throw_if_any();
  if (file.extension() == ".csv") {
    read_csv(source, table, report);
  } else {
    read_yaml(source, table, report);
  }
  report.throw_if_any();
  Axis axis = table.take();
  axis.origin = file.string() + ": ";
  if (axis.rows.empty() || axis.keys.empty())
    throw InputError(file.string() + ": error: the list has no plans; a sweep needs at least one");
  return axis;
}

}  // namespace trainsim::sweep
