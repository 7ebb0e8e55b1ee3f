// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/report_file.hpp"

#include "sim/base/diagnostics.hpp"

namespace trainsim::cli {

void ReportFile::declare(Options& options, const std::string& what) {
  options.add("--report", path_, "also write a page to FILE (HTML) that " + what + "; needs no network")
      .file();
}

void ReportFile::check_differs(const std::string& other, const std::string& option) const {
  if (!wanted() || !OutputFile::clash(path_, other)) return;
  throw InputError("trainsim: error: --report and " + option + " both name '" + path_ +
                   "'; give each a file of its own");
}

void ReportFile::open() {
  if (wanted()) file_.emplace(path_);
}

void ReportFile::write(const std::string& html) {
  if (file_) file_->write(html);
}

}  // namespace trainsim::cli
