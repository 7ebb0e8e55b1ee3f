// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/merge.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/command_text.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/report_file.hpp"
#include "sim/report/page/sweep_page.hpp"
#include "sim/report/sweep_rows.hpp"

namespace trainsim::cli {

namespace {

sweep::RowFile read_file(const std::string& name) {
  std::ifstream stream(name, std::ios::binary);
  std::ostringstream text;
  if (stream && stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  if (!stream.is_open() || stream.bad()) {
    throw InputError("trainsim: error: can't read '" + name + "': " + std::strerror(errno) +
                     "; name files that trainsim sweep wrote");
  }
  return {name, text.str()};
}

class MergeCommand : public Command {
 public:
  void declare(Options& options) override {
    options.add("FILES", files_, "files that the shards of a sweep wrote, in any order").required();
    options.add_flag("--table", table_, "print the table for people instead of the rows");
    report_.declare(options, "shows curves, a map, what is worth a look, and all points");
    options.add("-o,--output", common_.output, "write the rows to FILE instead of standard output").file();
  }

  int execute() override {
    report_.check_differs(common_.output, "--output");
    for (const std::string& name : files_) report_.check_differs(name, "FILES");
    std::vector<sweep::RowFile> files;
    files.reserve(files_.size());
    for (const std::string& name : files_) files.push_back(read_file(name));
    const sweep::RowLines lines = sweep::merge(files);
    const std::vector<sweep::Row> rows =
        table_ || report_.wanted() ? report::read_rows(lines) : std::vector<sweep::Row>{};
    OutputFile output(common_.output);
    report_.open();
    output.write(table_ ? report::sweep_text(rows) : sweep::file_text(lines));
    if (report_.wanted()) write_page(rows);
    return kDone;
  }

 private:
  void write_page(const std::vector<sweep::Row>& rows) {
    CommandText command("merge");
    for (const std::string& name : files_) command.argument(name);
    report_.write(report::to_html(report::SweepPage{rows, command.text(), TRAINSIM_VERSION}));
  }

  std::vector<std::string> files_;
  bool table_ = false;
  ReportFile report_;
};

}  // namespace

std::unique_ptr<Command> make_merge() {
  return std::make_unique<MergeCommand>();
}

}  // namespace trainsim::cli
