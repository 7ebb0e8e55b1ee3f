// SPDX-License-Identifier: Apache-2.0
#include "sim/report/sweep_rows.hpp"

#include <algorithm>

#include "sim/report/csv_cells.hpp"
#include "sim/report/json_dump.hpp"
#include "sim/sweep/csv_line.hpp"

namespace trainsim::report {

namespace {

using sweep::Cell;
using sweep::CellKind;
using sweep::Row;

std::string json_text(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Row row_of_json(const std::string& line) {
  Row row;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return row;
  for (const auto& [name, value] : json.items()) {
    if (value.is_null()) {
      row.push_back({name, "", CellKind::kNone});
    } else if (value.is_string()) {
      row.push_back({name, value.get<std::string>(), CellKind::kText});
    } else {
      row.push_back({name, value.dump(), CellKind::kBare});
    }
  }
  return row;
}

Row row_of_csv(const std::vector<std::string>& columns, const std::string& line) {
  const std::vector<std::string> cells = sweep::split_csv_line(line);
  Row row;
  row.reserve(columns.size());
  for (std::size_t c = 0; c < std::min(columns.size(), cells.size()); ++c) {
    row.push_back(cells[c].empty() ? Cell{columns[c], "", CellKind::kNone}
                                   : sweep::value_cell(columns[c], cells[c]));
  }
  return row;
}

}  // namespace

std::string csv_header(const Row& row) {
  std::string line;
  for (const Cell& cell_of_row : row) {
    if (!line.empty()) line += ",";
    line += cell(cell_of_row.column);
  }
  return line;
}

std::string csv_line(const Row& row) {
  std::string line;
  for (std::size_t c = 0; c < row.size(); ++c) {
    if (c > 0) line += ",";
    line += cell(row[c].text);
  }
  return line;
}

std::string json_line(const Row& row) {
  std::string line = "{";
  for (const Cell& cell_of_row : row) {
    if (line.size() > 1) line += ",";
    line += json_text(cell_of_row.column) + ":";
    switch (cell_of_row.kind) {
      case CellKind::kNone:
        line += "null";
        break;
      case CellKind::kBare:
        line += cell_of_row.text;
        break;
      case CellKind::kText:
        line += json_text(cell_of_row.text);
        break;
    }
  }
  return line + "}";
}

std::vector<Row> read_rows(const sweep::RowLines& lines) {
  const std::vector<std::string> columns = sweep::split_csv_line(lines.header);
  std::vector<Row> rows;
  rows.reserve(lines.lines.size());
  for (const std::string& line : lines.lines) {
    rows.push_back(lines.format == sweep::RowFormat::kCsv ? row_of_csv(columns, line) : row_of_json(line));
  }
  return rows;
}

}  // namespace trainsim::report
