// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/commands.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/bench.hpp"
#include "sim/cli/calibrate.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/jitter.hpp"
#include "sim/cli/memory.hpp"
#include "sim/cli/memory_changes.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/topology.hpp"
#include "sim/cli/uncertainty.hpp"
#include "sim/cli/validate.hpp"
#include "sim/cli/verify_folding.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/config/experiment.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/report/check_report.hpp"
#include "sim/report/format.hpp"
#include "sim/report/notes.hpp"
#include "sim/report/validation.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

namespace {

/// Changes that a run's notes name when it does not fit.
constexpr std::size_t kHelpfulChanges = 3;

std::string formatted(const report::Summary& summary, Format format) {
  switch (format) {
    case Format::kJson:
      return report::to_json(summary);
    case Format::kCsv:
      return report::to_csv(summary);
    case Format::kText:
    case Format::kMarkdown:
      break;
  }
  return report::to_text(summary);
}

int judge(const Options& options, const report::Summary& summary) {
  int code = kDone;
  for (const std::string& assertion : options.assertions) {
    const report::AssertionResult result = report::check_assertion(summary, assertion);
    if (result.holds) continue;
    spdlog::error("assertion does not hold: {}", result.text);
    code = kAssertionFailed;
  }
  if (options.require_fit && !summary.fits) {
    spdlog::error("the plan does not fit: {} too much on the fullest rank",
                  report::gib(-summary.memory_headroom));
    return kDoesNotFit;
  }
  return code;
}

report::Uncertainty vary_constants(const Options& options, const config::Experiment& experiment,
                                   const engine::Progress& progress) {
  const UncertaintyOptions how{options.samples, options.seed, available_processors()};
  return relative_uncertainty(options.subject, options.overrides, experiment, how, progress);
}

/// Relative step times as seconds.
report::Uncertainty scaled(report::Uncertainty uncertainty, Seconds step_time) {
  uncertainty.low *= step_time;
  uncertainty.high *= step_time;
  for (report::ConstantEffect& constant : uncertainty.constants) {
    constant.step_time_low *= step_time;
    constant.step_time_high *= step_time;
  }
  return uncertainty;
}

int run(const Options& options) {
  for (const std::string& assertion : options.assertions) report::check_assertion_early(assertion);
  config::Experiment experiment = config::load(options.subject, options.overrides);
  const std::string chosen = choose_recomputation(experiment);
  OutputFile output(options.output);
  // The text on a terminal repeats them at its end.
  if (options.format != Format::kText || !options.output.empty()) {
    for (const std::string& warning : experiment.warnings) spdlog::warn("{}", warning);
  }
  spdlog::debug("{}: {} GPUs, {} micro-batches", experiment.name, experiment.plan.gpus,
                experiment.plan.micro_batches());
  std::optional<FoldingCheck> folding_check;
  if (options.verify_folding) folding_check.emplace(experiment);
  ProgressBar bar(!options.quiet);
  const engine::Progress progress = [&bar](double share) { bar.update(share); };
  std::optional<report::Uncertainty> uncertainty;
  if (options.uncertainty) uncertainty = vary_constants(options, experiment, progress);
  // Before the run itself, because SimGrid can't start again in the processes that are forked after it.
  std::optional<report::JitterResult> jitter;
  if (experiment.jitter.steps > 0) jitter = simulate_steps(experiment, available_processors(), progress);
  report::Summary summary = simulate(experiment, options.fold, progress);
  // For people only: scripts that try many plans would pay for it at each that does not fit.
  if (!summary.fits && options.format == Format::kText) {
    summary.changes = memory_changes({options.subject, options.overrides}, experiment, kHelpfulChanges);
    summary.notes = report::explain(summary);
  }
  bar.clear();
  if (!chosen.empty()) summary.notes.push_back("Recomputation: " + chosen);
  summary.jitter = jitter;
  if (uncertainty) summary.uncertainty = scaled(std::move(*uncertainty), summary.step_time);
  if (folding_check) summary.notes.push_back(folding_check->compare(summary));
  const std::string text = formatted(summary, options.format);
  const int code = judge(options, summary);
  output.write(text);
  return code;
}

report::CheckReport check_report(const config::Experiment& experiment) {
  const plan::ParallelPlan& plan = experiment.plan;
  const auto stage_count = plan.pipeline_parallel;
  report::CheckReport report{experiment.name, {}, experiment.defaults, experiment.warnings};
  std::string layers;
  for (const std::int64_t held : plan::stage_layers(plan, experiment.model)) {
    layers += (layers.empty() ? "" : ", ") + std::to_string(held);
  }
  report.derived = {
      {"parameters", report::count(model::total_parameters(experiment.model))},
      {"parameters per rank, first stage",
       report::count(static_cast<double>(lowering::stage_parameters(experiment.model, plan, 0)))},
      {"parameters per rank, last stage", report::count(static_cast<double>(lowering::stage_parameters(
                                              experiment.model, plan, stage_count - 1)))},
      {"data_parallel", std::to_string(plan.data_parallel)},
      {"global_batch_size", std::to_string(plan.global_batch_size)},
      {"micro-batches per step", std::to_string(plan.micro_batches())},
      {"tokens per step",
       report::count(static_cast<double>(plan.global_batch_size * experiment.model.sequence_length))},
      {"layers per virtual stage", layers},
      {"padded vocabulary", std::to_string(model::padded_vocabulary(
                                experiment.model.vocab_size, plan.vocab_padding, plan.tensor_parallel))},
      {"nodes",
       std::to_string((plan.gpus + experiment.cluster.gpus_per_node - 1) / experiment.cluster.gpus_per_node)},
      {"GPU memory", report::gib(experiment.cluster.gpu.memory) + ", " + report::gib(plan.memory_reserve) +
                         " of it reserved"}};
  return report;
}

int check(const Options& options) {
  config::Experiment experiment = config::load(options.subject, options.overrides);
  const std::string chosen = choose_recomputation(experiment);
  OutputFile output(options.output);
  report::CheckReport report = check_report(experiment);
  if (!chosen.empty()) report.derived.emplace_back("recompute", chosen);
  output.write(options.format == Format::kJson ? report::to_json(report) : report::to_text(report));
  return kDone;
}

int list(const Options& options) {
  report::PresetList presets;
  for (config::Preset& preset : config::list_presets(options.subject)) {
    presets.emplace_back(std::move(preset.name), std::move(preset.note));
  }
  OutputFile output(options.output);
  output.write(options.format == Format::kJson ? report::presets_to_json(presets)
                                               : report::presets_to_text(presets));
  return kDone;
}

std::string formatted(const validation::Evaluation& evaluation, Format format) {
  switch (format) {
    case Format::kJson:
      return report::to_json(evaluation);
    case Format::kCsv:
      return report::to_csv(evaluation);
    case Format::kMarkdown:
      return report::to_markdown(evaluation);
    case Format::kText:
      break;
  }
  return report::to_text(evaluation);
}

int validate(const Options& options) {
  OutputFile output(options.output);
  std::optional<OutputFile> picture;
  if (!options.picture.empty()) picture.emplace(options.picture);
  const std::size_t workers = options.workers > 0 ? options.workers : available_processors();
  const validation::Evaluation evaluation =
      evaluate(options.subject, {workers, options.overrides, !options.quiet});
  for (const std::string& problem : evaluation.problems) std::fprintf(stderr, "%s\n", problem.c_str());
  if (picture) picture->write(report::to_svg(evaluation));
  output.write(formatted(evaluation, options.format));
  return kDone;
}

int calibrate(const Options& options) {
  OutputFile output(options.output);
  const CalibrationText text = calibrate_files({options.files, options.gpu, options.cluster});
  for (const std::string& warning : text.warnings) spdlog::warn("{}", warning);
  output.write(text.yaml);
  return kDone;
}

int bench(const Options& options) {
  OutputFile output(options.output);
  const report::Bench result = run_bench(
      {options.cluster, options.overrides, options.op, options.sizes, options.gpus, options.compare});
  switch (options.format) {
    case Format::kJson:
      output.write(report::to_json(result));
      break;
    case Format::kCsv:
      output.write(report::to_csv(result));
      break;
    case Format::kText:
    case Format::kMarkdown:
      output.write(report::to_text(result));
      break;
  }
  return kDone;
}

int memory(const Options& options) {
  OutputFile output(options.output);
  ProgressBar bar(!options.quiet);
  const report::MemoryReport report = describe_memory(
      {{options.subject, options.overrides}, options.rank, options.largest, options.fewest_gpus},
      [&bar](double share) { bar.update(share); });
  bar.clear();
  output.write(options.format == Format::kJson ? report::to_json(report) : report::to_text(report));
  return judge(options, report.summary);
}

int topology(const Options& options) {
  OutputFile output(options.output);
  output.write(describe_topology(
      {options.cluster, options.overrides, options.gpus, options.format == Format::kJson, options.picture}));
  return kDone;
}

}  // namespace

int execute(const Options& options) {
  switch (options.command) {
    case Command::kCheck:
      return check(options);
    case Command::kList:
      return list(options);
    case Command::kValidate:
      return validate(options);
    case Command::kCalibrate:
      return calibrate(options);
    case Command::kBench:
      return bench(options);
    case Command::kTopology:
      return topology(options);
    case Command::kMemory:
      return memory(options);
    case Command::kRun:
      break;
  }
  return run(options);
}

}  // namespace trainsim::cli
