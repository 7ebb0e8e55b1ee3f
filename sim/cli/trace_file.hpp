// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "sim/cli/output_file.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// Where a trace goes, if one is wanted.
class TraceFile {
 public:
  /// `path` empty = no trace; it is compressed if that ends in ".gz". `output` is where the result goes.
  /// Throws InputError when the trace can't be created, or is the same file.
  TraceFile(const std::string& path, const std::string& output);
  bool wanted() const { return file_.has_value(); }
  /// Writes the trace, if it is wanted; shortened if it is long and not compressed. Throws std::runtime_error
  /// when it can't (full disk).
  void write(const report::Summary& summary, const Recording& recording);

 private:
  std::optional<OutputFile> file_;
  bool compressed_;
};

}  // namespace trainsim::cli
