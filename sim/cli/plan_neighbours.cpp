// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_neighbours.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/cli/plan_base.hpp"
#include "sim/cli/plan_trial.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/search/neighbours.hpp"

namespace trainsim::cli {

report::NeighbourReport simulate_neighbours(const Subject& subject, std::size_t workers,
                                            const std::function<void(double)>& progress) {
  const PlanBase own = read_plan_base(subject, "neighbours");
  search::Neighbourhood around = search::neighbours_of(own.base);
  report::NeighbourReport report;
  report.name = own.experiment.name;
  report.illegal = around.illegal;
  // The configuration itself comes first.
  std::vector<config::Experiment> experiments = {own.experiment};
  report.neighbours.reserve(around.legal.size());
  experiments.reserve(around.legal.size() + 1);
  for (search::Neighbour& neighbour : around.legal) {
    experiments.push_back(config::load(own.subject.name, joined(own.subject.overrides, neighbour.overrides),
                                       config::Scope::kStep));
    experiments.back().jitter = {};
    report::NeighbourResult result;
    result.change = std::move(neighbour.change);
    result.result.overrides = std::move(neighbour.overrides);
    report.neighbours.push_back(std::move(result));
  }
  std::size_t done = 0;
  const auto work = [&](std::size_t task) { return packed(try_in_full(experiments[task])); };
  run_forked(experiments.size(), workers, work, [&](std::size_t task, const WorkResult& result) {
    if (!result.done) throw std::runtime_error("a neighbour could not be simulated: " + result.text);
    report::PlanResult& place = task == 0 ? report.own : report.neighbours[task - 1].result;
    Overrides overrides = std::move(place.overrides);
    place = unpacked(result.text);
    place.overrides = std::move(overrides);
    place.plan = experiments[task].plan;
    progress(static_cast<double>(++done) / static_cast<double>(experiments.size()));
  });
  for (report::NeighbourResult& neighbour : report.neighbours) {
    neighbour.result.relative = neighbour.result.step_time / report.own.step_time;
    neighbour.result.why = report::explain_difference(report.own, neighbour.result);
  }
  std::stable_sort(report.neighbours.begin(), report.neighbours.end(),
                   [](const report::NeighbourResult& a, const report::NeighbourResult& b) {
                     const auto key = [](const report::PlanResult& result) {
                       return std::tuple(result.verdict == report::Verdict::kDoesNotFit, result.step_time,
                                         result.peak_memory);
                     };
                     return key(a.result) < key(b.result);
                   });
  return report;
}

}  // namespace trainsim::cli
