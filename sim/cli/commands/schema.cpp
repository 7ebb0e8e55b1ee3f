// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/exchange/json_schema.hpp"

namespace trainsim::cli {

namespace {

class SchemaCommand : public Command {
 public:
  void declare(Options& options) override {
    options.add("KIND", kind_, join_alternatives(exchange::schema_kinds()) + "; config by default");
    options.add("-o,--output", common_.output, "write the schema to FILE instead of standard output").file();
  }

  int execute() override {
    const std::vector<std::string>& kinds = exchange::schema_kinds();
    if (std::find(kinds.begin(), kinds.end(), kind_) == kinds.end()) fail_choice("KIND", kind_, kinds);
    OutputFile output(common_.output);
    output.write(exchange::json_schema(kind_));
    return kDone;
  }

 private:
  std::string kind_ = "config";
};

}  // namespace

std::unique_ptr<Command> make_schema() {
  return std::make_unique<SchemaCommand>();
}

}  // namespace trainsim::cli
