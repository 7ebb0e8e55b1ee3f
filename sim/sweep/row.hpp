// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainsim::sweep {

/// How a cell is written in formats that know types.
enum class CellKind {
  /// There is no value: null, or an empty cell.
  kNone,
  /// A number or boolean, which stands for itself.
  kBare,
  kText,
};

/// A value of a row.
struct Cell {
  std::string column;
  std::string text;
  CellKind kind = CellKind::kNone;
};

/// One point: the varied keys, results, and what says which point of which sweep it is (docs/sweep.md).
using Row = std::vector<Cell>;

/// The cell of a column, or null.
const Cell* find(const Row& row, std::string_view column);

/// A cell for a value as it stands in a configuration: a number or boolean of JSON is bare, all else text.
Cell value_cell(std::string column, const std::string& value);

/// Columns with a meaning of their own.
inline constexpr std::string_view kFirstResult = "name";
inline constexpr std::string_view kError = "error";

/// Which point of which sweep a row is: the last three columns, `point`, `points` and `sweep`.
struct Identity {
  /// From 1 to points.
  std::size_t point = 0;
  std::size_t points = 0;
  /// Fingerprint of the configuration and of what is varied.
  std::string sweep;
};

/// The last three cells of a row.
Row identity_cells(const Identity& identity);

/// How rows are written.
enum class RowFormat { kJsonLines, kCsv };

/// The identity of a written row; nothing when the line is not complete, or has another form.
std::optional<Identity> identity_of(std::string_view line, RowFormat format);

/// Rows of a file, as they were written.
struct RowLines {
  RowFormat format = RowFormat::kJsonLines;
  /// First line of a CSV file; empty otherwise.
  std::string header;
  std::vector<std::string> lines;
  std::vector<Identity> identities;
  /// Bytes up to the end of the last complete line; what follows is torn.
  std::size_t complete_bytes = 0;
  bool torn = false;
};

/// Takes a file's text apart. `name` is for messages. Throws InputError when a complete line is no row.
RowLines read_lines(const std::string& text, const std::string& name);

}  // namespace trainsim::sweep
