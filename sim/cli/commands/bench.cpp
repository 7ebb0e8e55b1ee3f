// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/bench.hpp"

#include <string>

#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/formatted.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/report/bench.hpp"

namespace trainsim::cli {

namespace {

class BenchCommand : public Command {
 public:
  void declare(Options& options) override {
    options.add("--cluster", request_.cluster, "the cluster: a preset or a file").value("CLUSTER").required();
    options
        .add("--op", request_.op,
             "all_reduce (the default), all_gather, reduce_scatter, broadcast or all_to_all")
        .value("OP");
    options
        .add("--sizes", request_.sizes,
             "as in '1 MiB..1 GiB' (doubling, the default), '1 MiB..1 GiB*4' or '8 B, 1 MiB'")
        .value("SIZES");
    options
        .add("--gpus", request_.gpus,
             "GPUs that take part, at most 16384, or 512 in an all-to-all; one node by default")
        .value("N")
        .within(1, 1'000'000);
    options
        .add("--compare", request_.compare,
             "output of a program of nccl-tests: simulate the same, and show the error")
        .file();
    add_overrides(options, request_.overrides,
                  "override a value of the cluster, as in cluster.nics_per_node=4");
    common_.declare(options, {Format::kText, Format::kJson, Format::kCsv});
  }

  int execute() override {
    OutputFile output(common_.output);
    output.write(formatted(run_bench(request_), common_.format));
    return kDone;
  }

 private:
  BenchRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_bench() {
  return std::make_unique<BenchCommand>();
}

}  // namespace trainsim::cli
