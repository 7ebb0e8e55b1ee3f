// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/topology.hpp"

#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"

namespace trainsim::cli {

namespace {

class TopologyCommand : public Command {
 public:
  void declare(Options& options) override {
    options.add("CLUSTER", request_.cluster, "the cluster: a preset or a file").required();
    options.add("--gpus", request_.gpus, "GPUs that the cluster has; by default enough to show all levels")
        .value("N")
        .within(1, 131'072);
    options.add("--picture", request_.picture, "draw it to FILE: .svg (needs Graphviz) or .dot").file();
    add_overrides(options, request_.overrides,
                  "override a value of the cluster, as in cluster.nics_per_node=4");
    common_.declare(options, {Format::kText, Format::kJson});
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
