// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/cli/row_appender.hpp"
#include "sim/cli/sweep.hpp"
#include "sim/sweep/row.hpp"

namespace trainsim::cli {

/// The rows of a sweep in a file, or on standard output, to which they are written one by one.
class SweepFile {
 public:
  /// Opens the file. With `resume` the rows that it has are kept if they are the first ones of this task, and
  /// a torn one at the end is cut off; without, it starts anew. Throws InputError when the rows are of
  /// another sweep or shard, or when an unfinished file of this sweep would be lost without `resume`.
  SweepFile(const std::string& path, sweep::RowFormat format, const SweepTask& task, bool resume);

  /// The rows that were kept.
  const std::vector<sweep::Row>& rows() const { return rows_; }
  /// Writes a row. Throws std::runtime_error when it can't.
  void append(const sweep::Row& row);
  bool is_terminal() const { return appender_.is_terminal(); }

 private:
  void keep_rows(const SweepTask& task, const std::string& header);
  void refuse_to_lose(const SweepTask& task) const;

  std::string path_;
  sweep::RowFormat format_;
  RowAppender appender_;
  std::vector<sweep::Row> rows_;
};

}  // namespace trainsim::cli
