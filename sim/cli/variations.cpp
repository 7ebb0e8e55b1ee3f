// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/variations.hpp"

#include <stdexcept>
#include <utility>

#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

namespace {

std::string simulate_to_json(config::Experiment experiment, bool fold) {
  const std::string chosen = choose_recomputation(experiment);
  report::Summary summary = simulate(experiment, fold, {});
  if (!chosen.empty()) summary.notes.push_back("Recomputation: " + chosen);
  return report::to_json(summary);
}

report::ComparedRun run_of(const Variation& variation, const std::string& json, const std::string& name) {
  const config::Experiment& experiment = variation.experiment;
  return {variation.label,
          experiment.description,
          experiment.model.name,
          experiment.cluster.name,
          variation.overrides,
          experiment.values,
          json,
          report::figures_of(json, name)};
}

}  // namespace

std::vector<report::ComparedRun> simulate_variations(const std::vector<Variation>& variations,
                                                     const VariationOptions& options, std::size_t first) {
  std::vector<report::ComparedRun> runs(variations.size());
  std::size_t done = 0;
  run_forked(
      variations.size(), options.workers,
      [&](std::size_t index) { return simulate_to_json(variations[index].experiment, options.fold); },
      [&](std::size_t index, const WorkResult& result) {
        if (!result.done) throw std::runtime_error(variations[index].label + ": " + result.text);
        runs[index] = run_of(variations[index], result.text, report::run_letter(first + index));
        options.progress(static_cast<double>(++done) / static_cast<double>(variations.size()));
      });
  return runs;
}

}  // namespace trainsim::cli
