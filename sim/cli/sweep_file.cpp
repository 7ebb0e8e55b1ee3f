// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/sweep_file.hpp"

#include "sim/base/diagnostics.hpp"
#include "sim/report/sweep_rows.hpp"

namespace trainsim::cli {

namespace {

using sweep::RowFormat;
using sweep::RowLines;

[[noreturn]] void fail(const std::string& message) {
  throw InputError("trainsim: error: " + message);
}

bool same_sweep(const sweep::Identity& identity, const SweepTask& task) {
  return identity.sweep == task.fingerprint && identity.points == task.whole.size();
}

/// Whether rows are those of the task from its first point on.
bool is_beginning(const RowLines& rows, const SweepTask& task) {
  if (rows.identities.size() > task.points.size()) return false;
  for (std::size_t i = 0; i < rows.identities.size(); ++i) {
    if (rows.identities[i].point != task.points[i] + 1) return false;
  }
  return true;
}

std::string header_of(const SweepTask& task) {
  return report::csv_header(row_of(task.whole, {}, {1, task.whole.size(), task.fingerprint}));
}

}  // namespace

SweepFile::SweepFile(const std::string& path, RowFormat format, const SweepTask& task, bool resume)
    : path_(path), format_(format), appender_(path) {
  const std::string header = format == RowFormat::kCsv ? header_of(task) : "";
  if (resume) {
    keep_rows(task, header);
  } else {
    refuse_to_lose(task);
    appender_.keep(0);
    if (!header.empty()) appender_.append(header);
  }
}

void SweepFile::keep_rows(const SweepTask& task, const std::string& header) {
  const RowLines old = sweep::read_lines(appender_.text(), path_);
  const bool begun = old.complete_bytes > 0;
  if (begun && old.format != format_) {
    fail("'" + path_ + "' has rows in another format; use --format " +
         (old.format == RowFormat::kCsv ? "csv" : "jsonl") + " or another file");
  }
  const bool different = begun && (old.header != header ||
                                   (!old.identities.empty() && !same_sweep(old.identities.front(), task)));
  if (different) {
    fail("'" + path_ +
         "' holds rows of a different sweep (another configuration, --set, varied values or version of "
         "trainsim); "
         "repeat its command as it was, or name another file");
  }
  if (!is_beginning(old, task)) {
    fail("'" + path_ +
         "' does not hold the first rows of this shard; repeat its --shard as it was, or name "
         "another file");
  }
  rows_ = report::read_rows(old);
  appender_.keep(old.complete_bytes);
  if (!begun && !header.empty()) appender_.append(header);
}

void SweepFile::refuse_to_lose(const SweepTask& task) const {
  RowLines old;
  try {
    old = sweep::read_lines(appender_.text(), path_);
  } catch (const InputError&) {
    // Another file that may be replaced.
    return;
  }
  if (old.identities.empty() || !same_sweep(old.identities.front(), task)) return;
  const bool mine = is_beginning(old, task);
  if (mine && old.identities.size() == task.points.size()) return;
  if (!mine)
    fail("'" + path_ +
         "' holds rows of this sweep that are not of this shard; name another file, or remove it");
  fail("'" + path_ + "' has " + std::to_string(old.identities.size()) + " of the " +
       std::to_string(task.points.size()) + " rows already; go on with --resume, or remove it to start anew");
}

void SweepFile::append(const sweep::Row& row) {
  appender_.append(format_ == RowFormat::kCsv ? report::csv_line(row) : report::json_line(row));
}

}  // namespace trainsim::cli
