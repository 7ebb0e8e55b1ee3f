// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/memory.hpp"

#include <algorithm>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/fleet.hpp"
#include "sim/cli/memory_changes.hpp"
#include "sim/cli/simulate.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;

/// Changes that `trainsim memory` shows.
constexpr std::size_t kMostChanges = 8;

/// The simulated rank that stands for the wanted one: ranks of a stage have the same memory.
std::size_t index_of(const MemoryRequest& request, const Experiment& experiment,
                     const report::Summary& summary) {
  const std::vector<report::RankSummary>& ranks = summary.ranks;
  if (!request.rank) return static_cast<std::size_t>(&report::fullest_rank(summary) - ranks.data());
  const std::int64_t stage = plan::coordinates_of(experiment.plan, *request.rank).stage;
  const auto found =
      std::find_if(ranks.begin(), ranks.end(), [&](const auto& rank) { return rank.stage == stage; });
  return static_cast<std::size_t>(found - ranks.begin());
}

void check_rank(const MemoryRequest& request, const Experiment& experiment) {
  if (!request.rank || *request.rank < experiment.plan.gpus) return;
  throw InputError("trainsim: error: --rank " + std::to_string(*request.rank) + ": there are ranks 0 to " +
                   std::to_string(experiment.plan.gpus - 1));
}

}  // namespace

report::MemoryReport describe_memory(const MemoryRequest& request, const engine::Progress& progress) {
  const Subject& subject = request.subject;
  Experiment experiment = config::load(subject.name, subject.overrides, config::Scope::kStep);
  check_rank(request, experiment);
  report::MemoryReport report;
  report.chosen = choose_recomputation(experiment);
  report.summary = simulate(experiment, true, progress, ReplayAllocator::kForAll);
  report.rank = index_of(request, experiment, report.summary);
  report.rank_id = request.rank.value_or(report.summary.ranks[report.rank].rank);
  if (report.summary.verdict != report::Verdict::kFits)
    report.summary.changes = memory_changes(subject, experiment, kMostChanges);
  if (!request.largest.empty())
    report.answers.push_back(largest_that_fits(subject, experiment, request.largest));
  if (request.fewest_gpus) report.answers.push_back(fewest_gpus(subject, experiment));
  return report;
}

}  // namespace trainsim::cli
