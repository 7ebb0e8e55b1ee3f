// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/compare_page.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/report/difference_json.hpp"
#include "sim/report/format.hpp"
#include "sim/report/page/frame.hpp"
#include "sim/report/page/parts.hpp"

namespace trainsim::report {

namespace {

/// Runs that a heading names one by one.
constexpr std::size_t kMostNames = 3;

/// The largest numbers of the ranks of a pipeline stage.
struct StageMaxima {
  std::int64_t layers = 0;
  Seconds busy = 0;
  /// Bubble over bubble and busy time.
  double bubble_ratio = 0;
  Bytes peak_memory = 0;
};

/// Over all ranks of a run's JSON result, by stage.
Json stages_json(const Json& ranks) {
  std::map<std::int64_t, StageMaxima> stages;
  for (const Json& rank : ranks) {
    StageMaxima& stage = stages[rank["stage"].get<std::int64_t>()];
    const double busy = rank["busy_s"];
    const double bubble = rank["bubble_s"];
    stage.layers = std::max(stage.layers, rank["layers"].get<std::int64_t>());
    stage.busy = std::max(stage.busy, busy);
    if (busy + bubble > 0) stage.bubble_ratio = std::max(stage.bubble_ratio, bubble / (busy + bubble));
    stage.peak_memory = std::max(stage.peak_memory, rank["peak_memory_bytes"].get<Bytes>());
  }
  Json json = Json::array();
  for (const auto& [number, stage] : stages) {
    json.push_back({{"stage", number},
                    {"layers", stage.layers},
                    {"busy_s", stage.busy},
                    {"bubble_ratio", stage.bubble_ratio},
                    {"peak_memory_bytes", stage.peak_memory}});
  }
  return json;
}

Json run_json(const ComparedRun& run) {
  const Json full = Json::parse(run.json);
  return {{"run", run.figures.name},
          {"label", run.label},
          {"description", run.description},
          {"set", run.overrides},
          {"tokens", run.figures.tokens},
          {"result", shown_results(full)},
          {"stages", stages_json(full["ranks"])}};
}

/// The fastest run that fits; null if none does.
const Figures* fastest(const Comparison& comparison) {
  const Figures* best = nullptr;
  for (const ComparedRun& run : comparison.runs) {
    const Figures& figures = run.figures;
    if (figures.verdict == Verdict::kDoesNotFit) continue;
    if (best == nullptr || figures.step_time / figures.tokens < best->step_time / best->tokens)
      best = &figures;
  }
  return best;
}

/// What to know first: of two runs how they differ, of more which is the fastest.
std::string headline(const Comparison& comparison) {
  const Figures& first = comparison.runs.front().figures;
  if (comparison.runs.size() == 2) return time_sentence(difference(first, comparison.runs.back().figures));
  const Figures* best = fastest(comparison);
  const std::string of = "Of " + std::to_string(comparison.runs.size()) + " runs ";
  if (best == nullptr) return of + "none fits into memory.";
  const std::string is_fastest = of + best->name + " is the fastest that fits into memory";
  return best == &first ? is_fastest + "." : is_fastest + ". " + time_sentence(difference(first, *best));
}

/// "old – new", or of many runs "old and 5 others".
std::string name_of(const std::vector<ComparedRun>& runs) {
  if (runs.size() > kMostNames)
    return runs.front().label + " and " + std::to_string(runs.size() - 1) + " others";
  std::string name;
  for (const ComparedRun& run : runs) {
    name += name.empty() ? "" : " – ";
    name += run.label;
  }
  return name;
}

Json page_json(const Comparison& comparison) {
  Json runs = Json::array();
  Json differences = Json::array();
  for (const ComparedRun& run : comparison.runs) {
    runs.push_back(run_json(run));
    if (&run != &comparison.runs.front())
      differences.push_back(difference_json(difference(comparison.runs.front().figures, run.figures)));
  }
  return {{"headline", headline(comparison)},
          {"runs", std::move(runs)},
          {"inputs", inputs_json(comparison)},
          {"differences", std::move(differences)}};
}

}  // namespace

std::string to_html(const ComparePage& page) {
  const PageFrame frame{"Comparison", name_of(page.comparison.runs), "", page.command, page.version};
  return framed(kComparePage, frame, page_json(page.comparison));
}

}  // namespace trainsim::report
