// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/compare_page.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/report/difference_json.hpp"
#include "sim/report/format.hpp"
#include "sim/report/page/frame.hpp"

namespace trainsim::report {

namespace {

/// What of a run's JSON result, and of each of its ranks, the page shows.
constexpr std::array<std::string_view, 22> kResults = {"model",
                                                       "cluster",
                                                       "gpu",
                                                       "parameters",
                                                       "step_time_s",
                                                       "tokens_per_s",
                                                       "tokens_per_s_per_gpu",
                                                       "model_tflops_per_gpu",
                                                       "mfu",
                                                       "hfu",
                                                       "bubble_ratio",
                                                       "scaling_efficiency",
                                                       "fits",
                                                       "verdict",
                                                       "peak_memory_bytes",
                                                       "memory_capacity_bytes",
                                                       "memory_reserve_bytes",
                                                       "memory_headroom_bytes",
                                                       "breakdown",
                                                       "plan",
                                                       "warnings",
                                                       "notes"};
constexpr std::array<std::string_view, 7> kRankResults = {"stage",  "rank",     "represents",       "layers",
                                                          "busy_s", "bubble_s", "peak_memory_bytes"};
/// Ranks of a run at most; a page of 26 runs of as many stays small.
constexpr std::size_t kMostRanks = 256;
/// Runs that a heading names one by one.
constexpr std::size_t kMostNames = 3;

template <std::size_t Count>
Json part_of(const Json& json, const std::array<std::string_view, Count>& keys) {
  Json part = Json::object();
  for (const std::string_view key : keys) {
    if (const auto found = json.find(key); found != json.end()) part[std::string(key)] = *found;
  }
  return part;
}

Json run_json(const ComparedRun& run) {
  const Json full = Json::parse(run.json);
  Json result = part_of(full, kResults);
  Json ranks = Json::array();
  for (const Json& rank : full["ranks"]) {
    if (ranks.size() == kMostRanks) break;
    ranks.push_back(part_of(rank, kRankResults));
  }
  result["ranks"] = std::move(ranks);
  result["ranks_of_run"] = full["ranks"].size();
  return {{"run", run.figures.name}, {"label", run.label},           {"description", run.description},
          {"set", run.overrides},    {"tokens", run.figures.tokens}, {"result", std::move(result)}};
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
