// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "sim/cli/options.hpp"
#include "sim/cli/output_file.hpp"

namespace trainsim::cli {

/// Where --report writes a page, if one is wanted.
class ReportFile {
 public:
  /// Adds --report; `what` ends its help: "shows all of it, with pictures".
  void declare(Options& options, const std::string& what);

  /// The file's name; empty = no page.
  std::string& path() { return path_; }
  bool wanted() const { return !path_.empty(); }
  /// Throws InputError when the page would overwrite `other`, which `option` names (its files may be read or
  /// written).
  void check_differs(const std::string& other, const std::string& option) const;
  /// Tries the file before the work begins; throws InputError when it can't be written.
  void open();
  /// Writes the page, which appears under its name only when it is complete. Throws std::runtime_error when
  /// it can't be written.
  void write(const std::string& html);

 private:
  std::string path_;
  std::optional<OutputFile> file_;
};

}  // namespace trainsim::cli
