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
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
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
    options.add("-o,--output", common_.output, "write the rows to FILE instead of standard output")
        .value("FILE");
  }

  int execute() override {
    std::vector<sweep::RowFile> files;
    files.reserve(files_.size());
    for (const std::string& name : files_) files.push_back(read_file(name));
    const sweep::RowLines rows = sweep::merge(files);
    OutputFile output(common_.output);
    output.write(table_ ? report::sweep_text(report::read_rows(rows)) : sweep::file_text(rows));
    return kDone;
  }

 private:
  std::vector<std::string> files_;
  bool table_ = false;
};

}  // namespace

std::unique_ptr<Command> make_merge() {
  return std::make_unique<MergeCommand>();
}

}  // namespace trainsim::cli
