// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/csv_table.hpp"

#include <algorithm>
#include <sstream>

#include "sim/config/readers.hpp"

namespace trainsim::validation {

namespace {

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> cells;
  std::istringstream stream{std::string(line)};
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  if (line.ends_with(',')) cells.emplace_back();
  return cells;
}

template <class T>
T read_cell(const std::string& text, std::string_view column, const config::Position& at,
            const config::Reader<T>& reader, config::Report& report) {
  const config::Parsed<T> parsed = reader.parse(config::make_scalar(text, at));
  if (!parsed.value) report.add(at, std::string(column), parsed.error);
  return parsed.value.value_or(T{});
}

}  // namespace

std::string CsvRow::text(std::string_view column) const {
  const auto place = std::find(header_.begin(), header_.end(), column);
  return place == header_.end() ? "" : cells_[static_cast<std::size_t>(place - header_.begin())];
}

double CsvRow::number(std::string_view column, config::Report& report) const {
  return read_cell(text(column), column, at_, config::as_number(config::kPositive), report);
}

std::int64_t CsvRow::count(std::string_view column, config::Report& report) const {
  return read_cell(text(column), column, at_, config::as_count({1, 1'000'000'000'000'000}), report);
}

CsvTable::CsvTable(const std::filesystem::path& file, config::Report& report) {
  const std::shared_ptr<const config::Source> source = config::read_source(file, 0, report);
  if (!source) return;
  at_ = {source, 0, 0};
  const auto lines = static_cast<int>(std::count(source->text().begin(), source->text().end(), '\n')) + 1;
  for (int number = 1; number <= lines; ++number) {
    const std::string_view line = source->line(number);
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> cells = split(line);
    if (header_.empty()) {
      header_ = std::move(cells);
    } else if (cells.size() == header_.size()) {
      rows_.emplace_back(header_, std::move(cells), config::Position{source, number, 1});
    } else {
      report.add({source, number, 1}, "",
                 "the line has " + std::to_string(cells.size()) + " cells, but the header names " +
                     std::to_string(header_.size()) + " columns");
    }
  }
}

bool CsvTable::has(const std::vector<std::string_view>& columns) const {
  return std::all_of(columns.begin(), columns.end(), [this](std::string_view column) {
    return std::find(header_.begin(), header_.end(), column) != header_.end();
  });
}

}  // namespace trainsim::validation
