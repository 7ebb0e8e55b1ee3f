// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/report/summary.hpp"
#include "sim/sweep/row.hpp"

namespace trainsim::report {

/// The scalar results, in the order of docs/output.md. The columns are the same for every summary.
std::vector<sweep::Cell> scalar_cells(const Summary& summary);

/// Names of a row's columns, as the first line of a CSV file, without its end.
std::string csv_header(const sweep::Row& row);
/// A row as a line of a CSV file, without its end.
std::string csv_line(const sweep::Row& row);
/// A row as a JSON object on one line, without the line's end; text that is not UTF-8 keeps what can be kept.
std::string json_line(const sweep::Row& row);

/// The rows of a file.
std::vector<sweep::Row> read_rows(const sweep::RowLines& lines);

/// A table for people, and below it what the rows say: the fastest that fits, and in a sweep over a batch
/// size the knee and what memory allows (docs/sweep.md).
std::string sweep_text(const std::vector<sweep::Row>& rows);
/// Only the sentences below the table.
std::vector<std::string> sweep_notes(const std::vector<sweep::Row>& rows);

}  // namespace trainsim::report
