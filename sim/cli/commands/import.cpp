// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/import.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
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
      {"torchtitan", SourceKind::kTorchtitan}};
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
  void declare(CLI::App& app) override {
    app.add_option(
           "FILES", request_.files,
           "scripts that run Megatron-LM, DeepSpeed JSON, torchtitan TOML, config.json of Hugging Face; - is "
           "standard input; of two that disagree the later counts")
        ->required();
    app.add_option("--kind", kind_, "auto, hf, megatron, deepspeed or torchtitan: what the files are")
        ->type_name("KIND")
        ->default_str("auto");
    app.add_option("--cluster", request_.cluster, "the cluster to write: a preset or a file")
        ->type_name("NAME");
    app.add_option("--gpus", gpus_, "the GPUs to write; by default what the files say")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("-D,--define", definitions_,
                   "a variable of the script, as in NNODES=16, which keeps this value; repeatable")
        ->type_name("NAME=VALUE")
        ->expected(1)
        ->take_all();
    app.add_option("-o,--output", common_.output,
                   "write the configuration to FILE instead of standard output")
        ->type_name("FILE");
    app.add_flag("-q,--quiet", common_.quiet, "do not say on standard error what was assumed or left out");
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
