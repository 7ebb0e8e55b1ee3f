// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/topology.hpp"

#include <CLI/CLI.hpp>

#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"

namespace trainsim::cli {

namespace {

class TopologyCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("CLUSTER", request_.cluster, "the cluster: a preset or a file")->required();
    app.add_option("--gpus", request_.gpus, "GPUs that the cluster has; by default enough to show all levels")
        ->type_name("N")
        ->check(CLI::Range(1, 131'072));
    app.add_option("--picture", request_.picture, "draw it to FILE: .svg (needs Graphviz) or .dot")
        ->type_name("FILE");
    add_overrides(app, request_.overrides, "override a value of the cluster, as in cluster.nics_per_node=4");
    common_.declare(app, {Format::kText, Format::kJson});
  }

  int execute() override {
    OutputFile output(common_.output);
    request_.json = common_.format == Format::kJson;
    output.write(describe_topology(request_));
    return kDone;
  }

 private:
  TopologyRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_topology() {
  return std::make_unique<TopologyCommand>();
}

}  // namespace trainsim::cli
