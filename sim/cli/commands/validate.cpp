// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/validate.hpp"

#include <cstdio>
#include <optional>
#include <string>

#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/report/validation.hpp"

namespace trainsim::cli {

namespace {

std::string formatted(const validation::Evaluation& evaluation, Format format) {
  switch (format) {
    case Format::kJson:
      return report::to_json(evaluation);
    case Format::kCsv:
      return report::to_csv(evaluation);
    case Format::kMarkdown:
      return report::to_markdown(evaluation);
    case Format::kText:
    case Format::kJsonLines:
      break;
  }
  return report::to_text(evaluation);
}

class ValidateCommand : public Command {
 public:
  void declare(Options& options) override {
    options
        .add("DIR", folder_,
             "a folder (or one file) of measured runs and kernel tables, such as experiments/validation")
        .required();
    add_overrides(options, overrides_, "override a value of every configuration, as in plan.recompute=full");
    add_jobs(options, workers_, "runs to simulate");
    options.add("--picture", picture_, "draw measured against simulated step times to FILE (SVG)").file();
    common_.declare(options, {Format::kText, Format::kJson, Format::kCsv, Format::kMarkdown});
  }

  int execute() override {
    OutputFile output(common_.output);
    std::optional<OutputFile> picture;
    if (!picture_.empty()) picture.emplace(picture_);
    const validation::Evaluation evaluation =
        evaluate(folder_, {processes(workers_), overrides_, !common_.quiet});
    for (const std::string& problem : evaluation.problems) std::fprintf(stderr, "%s\n", problem.c_str());
    if (picture) picture->write(report::to_svg(evaluation));
    output.write(formatted(evaluation, common_.format));
    return kDone;
  }

 private:
  std::string folder_;
  Overrides overrides_;
  /// Where the picture goes; empty = nowhere.
  std::string picture_;
  std::size_t workers_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace trainsim::cli
