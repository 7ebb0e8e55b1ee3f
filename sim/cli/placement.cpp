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

namespace {

/// Ranks that may be left after folding; more take minutes.
constexpr std::size_t kMostRanks = 1024;
/// First character of what a worker says instead of a result, which is an object.
constexpr char kLeftOut = '!';

std::string try_placement(const config::Experiment& experiment, bool fold) {
  const std::size_t ranks = build_job(experiment, fold).ranks.size();
  if (ranks > kMostRanks) {
    return kLeftOut + (" is left out: no symmetry makes its " + std::to_string(ranks) +
                       " ranks fewer, and more than " + std::to_string(kMostRanks) + " take too long.");
  }
  return report::packed(report::placement_result(simulate(experiment, fold, {})));
}

/// Takes the rows out that were not simulated, with a sentence each.
void leave_out(report::Placement& placement, const std::vector<std::string>& reasons) {
  std::vector<report::PlacementRow> kept;
  kept.reserve(placement.rows.size());
  for (std::size_t i = 0; i < placement.rows.size(); ++i) {
    report::PlacementRow& row = placement.rows[i];
    if (reasons[i].empty()) {
      kept.push_back(std::move(row));
    } else {
      placement.note.append(placement.note.empty() ? "" : " ").append("The placement '");
      placement.note.append(row.meaning).append("'").append(reasons[i]);
    }
  }
  placement.rows = std::move(kept);
}

}  // namespace

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
  std::vector<std::string> reasons(experiments.size());
  const auto work = [&](std::size_t task) { return try_placement(experiments[task], options.fold); };
  run_forked(experiments.size(), options.workers, work, [&](std::size_t task, const WorkResult& result) {
    report::PlacementRow& row = placement.rows[task];
    if (!result.done) throw std::runtime_error(row.meaning + ": " + result.text);
    if (result.text.front() == kLeftOut) {
      reasons[task] = result.text.substr(1);
    } else {
      row.result = report::unpacked_placement(result.text);
    }
    options.progress(static_cast<double>(++done) / static_cast<double>(experiments.size()));
  });
  leave_out(placement, reasons);
  report::sort_by_step_time(placement);
  return placement;
}

}  // namespace trainsim::cli
