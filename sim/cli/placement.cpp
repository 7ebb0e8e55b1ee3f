// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/placement.hpp"

#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/report/placement.hpp"
#include "sim/search/placements.hpp"

namespace trainsim::cli {

report::Placement try_placements(const Subject& subject, const config::Experiment& base,
                                 const VariationOptions& options) {
  std::vector<search::PlacementChoice> choices = search::other_orders(base.plan);
  std::vector<search::PlacementChoice> nodes = search::other_nodes(base.plan, base.cluster);
  std::move(nodes.begin(), nodes.end(), std::back_inserter(choices));
  report::Placement placement;
  placement.note = search::why_no_other_nodes(base.plan, base.cluster);
  std::vector<config::Experiment> experiments;
  experiments.reserve(choices.size());
  placement.rows.reserve(choices.size());
  for (search::PlacementChoice& choice : choices) {
    std::optional<config::Experiment> changed = variant(subject, choice.overrides);
    if (!changed) continue;
    experiments.push_back(std::move(*changed));
    placement.rows.push_back({std::move(choice.meaning), std::move(choice.overrides), {}});
  }
  std::size_t done = 0;
  const auto work = [&](std::size_t task) {
    return report::packed(report::placement_result(simulate(experiments[task], options.fold, {})));
  };
  run_forked(experiments.size(), options.workers, work, [&](std::size_t task, const WorkResult& result) {
    report::PlacementRow& row = placement.rows[task];
    if (!result.done) throw std::runtime_error(row.meaning + ": " + result.text);
    row.result = report::unpacked_placement(result.text);
    options.progress(static_cast<double>(++done) / static_cast<double>(experiments.size()));
  });
  report::sort_by_step_time(placement);
  return placement;
}

}  // namespace trainsim::cli
