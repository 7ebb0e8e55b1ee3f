// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/calibrate.hpp"

#include <string>

#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"

namespace trainsim::cli {

namespace {

class CalibrateCommand : public Command {
 public:
  void declare(Options& options) override {
    options
        .add("FILES", request_.files,
             "tables of measured kernels or collectives (.csv), or outputs of nccl-tests")
        .required();
    const Option gpu = options.add("--gpu", request_.gpu, "the GPU preset to start from").value("PRESET");
    options.add("--cluster", request_.cluster, "the cluster preset to start from, whose links are fitted too")
        .value("PRESET")
        .excludes(gpu);
    options.add("-o,--output", common_.output, "write the YAML to FILE instead of standard output").file();
  }

  int execute() override {
    if (request_.gpu.empty() && request_.cluster.empty()) {
      throw InputError("trainsim: error: calibrate needs --gpu or --cluster, the preset to start from");
    }
    OutputFile output(common_.output);
    const CalibrationText text = calibrate_files(request_);
    for (const std::string& warning : text.warnings) spdlog::warn("{}", warning);
    output.write(text.yaml);
    return kDone;
  }

 private:
  CalibrationRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace trainsim::cli
