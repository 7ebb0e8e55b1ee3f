// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/import.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"

namespace trainsim::cli {

namespace {

using exchange::SourceKind;

const std::vector<std::pair<std::string, SourceKind>>& kinds() {
  static const std::vector<std::pair<std::string, SourceKind>> words = {
      {"auto", SourceKind::kAuto},
      {"hf", SourceKind::kHuggingFace},
      {"megatron", SourceKind::kMegatron},
      {"deepspeed", SourceKind::kDeepSpeed},
      {"torchtitan", SourceKind::kTorchtitan},
      {"megatron-log", SourceKind::kMegatronLog},
      {"kineto", SourceKind::kKineto}};
  return words;
}

SourceKind kind_named(const std::string& name) {
  std::vector<std::string> legal;
  for (const auto& [word, kind] : kinds()) {
    if (word == name) return kind;
    legal.push_back(word);
  }
  fail_choice("--kind", name, legal);
}

class ImportCommand : public Command {
 public:
  void declare(Options& options) override {
    options
        .add("FILES", request_.files,
             "scripts that run Megatron-LM, DeepSpeed JSON, torchtitan TOML, config.json of Hugging Face; "
             "with "
             "them logs of Megatron-LM's timers or traces of PyTorch's profiler for measured times; - is "
             "standard input; of two that disagree the later counts")
        .required();
    options
        .add(
            "--kind", kind_,
            "auto, hf, megatron, deepspeed, torchtitan, megatron-log or kineto: what the files are; the last "
            "two of logs and traces alone")
        .value("KIND")
        .fallback("auto");
    options.add("--cluster", request_.cluster, "the cluster to write: a preset or a file").value("CLUSTER");
    options.add("--gpus", gpus_, "the GPUs to write; by default what the files say")
        .value("N")
        .within(1, 1'000'000);
    options
        .add("-D,--define", definitions_,
             "a variable of the script, as in NNODES=16, which keeps this value; repeatable")
        .value("NAME=VALUE")
        .repeatable();
    options.add("-o,--output", common_.output, "write the configuration to FILE instead of standard output")
        .file();
    options.add_flag("-q,--quiet", common_.quiet,
                     "do not say on standard error what was assumed or left out");
  }

  int execute() override {
    request_.kind = kind_named(kind_);
    if (gpus_ > 0) request_.gpus = gpus_;
    for (const std::string& definition : definitions_) {
      const std::size_t equals = definition.find('=');
      if (equals == std::string::npos || equals == 0)
        throw InputError("trainsim: error: --define needs NAME=VALUE, not '" + definition + "'");
      request_.defined[definition.substr(0, equals)] = definition.substr(equals + 1);
    }
    OutputFile output(common_.output);
    const exchange::Imported imported = exchange::import_files(request_);
    output.write(imported.yaml);
    if (common_.quiet) return kDone;
    for (const std::string& line : imported.report) std::fprintf(stderr, "%s\n", line.c_str());
    if (!imported.fault.empty()) {
      spdlog::warn("`trainsim check` refuses what these files say:");
      std::fprintf(stderr, "%s", imported.fault.c_str());
    }
    return kDone;
  }

 private:
  exchange::ImportRequest request_;
  std::string kind_ = "auto";
  std::int64_t gpus_ = 0;
  std::vector<std::string> definitions_;
};

}  // namespace

std::unique_ptr<Command> make_import() {
  return std::make_unique<ImportCommand>();
}

}  // namespace trainsim::cli
