// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/report.hpp"

namespace trainsim::validation {

/// One line of a table.
class CsvRow {
 public:
  CsvRow(const std::vector<std::string>& header, std::vector<std::string> cells, config::Position at)
      : header_(header), cells_(std::move(cells)), at_(std::move(at)) {}

  /// Text of a column; "" when the table has no such column.
  std::string text(std::string_view column) const;
  /// A positive number; 0, after reporting why, when there is none.
  double number(std::string_view column, config::Report& report) const;
  /// A positive whole number; 0, after reporting why, when there is none.
  std::int64_t count(std::string_view column, config::Report& report) const;
  /// The start of the line.
  const config::Position& at() const { return at_; }

 private:
  const std::vector<std::string>& header_;
  std::vector<std::string> cells_;
  config::Position at_;
};

/// A table of comma-separated values without quotes; lines that begin with '#' are comments.
class CsvTable {
 public:
  /// Reads a file. Lines with too many or too few cells are reported and left out; a file that can't be read
  /// gives an empty table.
  CsvTable(const std::filesystem::path& file, config::Report& report);
  CsvTable(const CsvTable&) = delete;
  CsvTable& operator=(const CsvTable&) = delete;

  /// Whether the header names all of these columns.
  bool has(const std::vector<std::string_view>& columns) const;
  const std::vector<CsvRow>& rows() const { return rows_; }
  /// The file's start, for problems of the whole table.
  const config::Position& at() const { return at_; }

 private:
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
  config::Position at_;
};

}  // namespace trainsim::validation
