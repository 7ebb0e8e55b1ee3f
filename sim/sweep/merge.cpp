// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/merge.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/base/spelling.hpp"

namespace trainsim::sweep {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw InputError("trainsim: error: " + message);
}

/// Rows by point, as far as they are known.
class Merger {
 public:
  void add(const RowFile& file) {
    if (file.text.empty()) return;
    RowLines rows = read_lines(file.text, file.name);
    if (rows.torn) {
      fail("'" + file.name +
           "' ends in the middle of a row; repeat its sweep with --resume, which goes on from there");
    }
    check_alike(rows, file.name);
    for (std::size_t i = 0; i < rows.lines.size(); ++i) {
      check_sweep(rows.identities[i], file.name);
      place(rows.identities[i], std::move(rows.lines[i]), file.name);
    }
    note_stride(rows);
  }

  RowLines take() {
    std::vector<std::int64_t> missing;
    for (std::size_t p = 0; p < lines_.size(); ++p) {
      if (!lines_[p]) missing.push_back(static_cast<std::int64_t>(p) + 1);
    }
    if (!missing.empty()) {
      fail(std::to_string(missing.size()) + " of " + std::to_string(lines_.size()) +
           " points are missing: " + join_numbers(missing) + hint(missing));
    }
    if (lines_.empty())
      fail("there are no rows in these files; name those that trainsim sweep --shard wrote");
    RowLines merged;
    merged.format = format_.value_or(RowFormat::kJsonLines);
    merged.header = header_;
    merged.lines.reserve(lines_.size());
    for (std::optional<std::string>& line : lines_) {
      merged.identities.push_back(*identity_of(*line, merged.format));
      merged.lines.push_back(std::move(*line));
    }
    return merged;
  }

 private:
  void check_alike(const RowLines& rows, const std::string& name) {
    if (format_ && *format_ != rows.format)
      fail("'" + first_ + "' and '" + name +
           "' are of different formats (JSON Lines and CSV); write all shards in one");
    if (format_ && header_ != rows.header)
      fail("'" + first_ + "' and '" + name + "' have different columns, so they are of different sweeps");
    if (!format_) first_ = name;
    format_ = rows.format;
    header_ = rows.header;
  }

  void check_sweep(const Identity& identity, const std::string& name) {
    if (sweep_.empty()) {
      sweep_ = identity.sweep;
      sweep_file_ = name;
      lines_.resize(identity.points);
    }
    if (identity.sweep == sweep_ && identity.points == lines_.size()) return;
    fail("'" + sweep_file_ + "' and '" + name +
         "' hold rows of different sweeps (another configuration, --set, varied values or version of "
         "trainsim); "
         "merge the shards of one");
  }

  void place(const Identity& identity, std::string line, const std::string& name) {
    std::optional<std::string>& slot = lines_[identity.point - 1];
    if (slot && *slot != line) {
      fail("'" + name + "' has another result for point " + std::to_string(identity.point) +
           " than a file before it; remove the older one");
    }
    slot = std::move(line);
  }

  /// Shards hold every N-th point; two rows of a file tell N.
  void note_stride(const RowLines& rows) {
    if (rows.identities.size() < 2) return;
    stride_ = rows.identities[1].point - rows.identities[0].point;
  }

  /// Which shards to run, if whole shards are missing.
  std::string hint(const std::vector<std::int64_t>& missing) const {
    std::string shards;
    for (std::size_t k = 1; stride_ > 1 && k <= stride_; ++k) {
      bool absent = true;
      for (const std::size_t point : points_of_stride(k)) absent = absent && !lines_[point - 1];
      if (absent) shards += (shards.empty() ? "" : ", ") + std::to_string(k) + "/" + std::to_string(stride_);
    }
    if (!shards.empty() && shards.find(',') == std::string::npos)
      return "; the file of shard " + shards + " is not among these";
    if (!shards.empty()) return "; the files of shards " + shards + " are not among these";
    return missing.size() == 1 ? "; finish its sweep with --resume" : "; finish their sweeps with --resume";
  }

  std::vector<std::size_t> points_of_stride(std::size_t first) const {
    std::vector<std::size_t> points;
    for (std::size_t point = first; point <= lines_.size(); point += stride_) points.push_back(point);
    return points;
  }

  std::optional<RowFormat> format_;
  std::string header_;
  std::string first_;
  std::string sweep_;
  std::string sweep_file_;
  std::vector<std::optional<std::string>> lines_;
  std::size_t stride_ = 0;
};

}  // namespace

RowLines merge(const std::vector<RowFile>& files) {
  Merger merger;
  for (const RowFile& file : files) merger.add(file);
  return merger.take();
}

std::string file_text(const RowLines& rows) {
  std::string text = rows.header.empty() ? "" : rows.header + "\n";
  for (const std::string& line : rows.lines) {
    text += line;
    text += "\n";
  }
  return text;
}

}  // namespace trainsim::sweep
