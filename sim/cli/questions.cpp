// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/questions.hpp"

#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/placement.hpp"
#include "sim/cli/what_if.hpp"
#include "sim/report/placement.hpp"
#include "sim/report/sensitivity.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

namespace {

/// What a step depends on: variations have nothing else.
std::vector<std::pair<std::string, std::string>> values_of_step(const config::Experiment& experiment) {
  std::vector<std::pair<std::string, std::string>> values = experiment.values;
  std::erase_if(values, [](const auto& value) { return value.first.starts_with("run."); });
  return values;
}

/// The run itself as the first of a comparison.
report::ComparedRun base_run(const report::Summary& summary, const Subject& subject,
                             const config::Experiment& base) {
  return {summary.name,
          summary.description,
          base.model.name,
          base.cluster.name,
          subject.overrides,
          values_of_step(base),
          report::to_json(summary),
          report::figures_of(summary, report::run_letter(0))};
}

}  // namespace

void Questions::declare(Options& options) {
  options
      .add("--what-if", what_ifs_,
           "also simulate a change and show what it moves, as in gpu.hbm_bandwidth=+20% or "
           "op.attention.speedup=2; repeatable")
      .value("NAME=VALUE")
      .repeatable();
  options.add_flag(
      "--sensitivity", sensitivity_,
      "also simulate each part of the hardware and each operation 10 % better: what the step is bound by");
  options.add_flag("--placement", placement_,
                   "also simulate the other orders of ranks, and other nodes that the job could take");
}

void Questions::load(const Subject& subject, const config::Experiment& base, Format format) {
  const int tables = (sensitivity_ ? 1 : 0) + (placement_ ? 1 : 0) + (what_ifs_.empty() ? 0 : 1);
  if (format == Format::kCsv && tables > 1) {
    throw InputError(
        "trainsim: error: --format csv prints one table; give one of --what-if, --sensitivity and "
        "--placement, or use json");
  }
  variations_ = load_what_ifs(subject, base, what_ifs_);
}

void Questions::answer(const Subject& subject, const config::Experiment& base,
                       const VariationOptions& options) {
  runs_ = simulate_variations(variations_, options, 1);
  if (sensitivity_) found_ = measure_sensitivity(subject, base, options);
  if (placement_) found_placement_ = try_placements(subject, base, options);
}

report::Comparison Questions::what_ifs(const report::Summary& summary, const Subject& subject,
                                       const config::Experiment& base) const {
  report::Comparison comparison;
  if (runs_.empty()) return comparison;
  comparison.runs = {base_run(summary, subject, base)};
  comparison.runs.insert(comparison.runs.end(), runs_.begin(), runs_.end());
  return comparison;
}

void Questions::add_to(CommandText& command) const {
  command.option("--what-if", what_ifs_).flag("--sensitivity", sensitivity_).flag("--placement", placement_);
}

std::string Questions::formatted(const report::Summary& summary, const Subject& subject,
                                 const config::Experiment& base, const CommonOptions& how) const {
  const report::Comparison comparison = what_ifs(summary, subject, base);
  switch (how.format) {
    case Format::kJson:
      return runs_.empty() ? report::to_json(summary)
                           : report::with_what_if(report::to_json(summary), comparison);
    case Format::kCsv:
      if (found_placement_) return report::placement_csv(summary);
      if (found_) return report::sensitivity_csv(summary);
      return runs_.empty() ? report::to_csv(summary) : report::to_csv(comparison);
    case Format::kText:
    case Format::kMarkdown:
    case Format::kJsonLines:
      break;
  }
  const report::Detail detail = how.verbose ? report::Detail::kFull : report::Detail::kUsual;
  return report::to_text(summary, detail) + report::what_if_text(comparison);
}

}  // namespace trainsim::cli
