// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "sim/report/difference_json.hpp"
#include "sim/report/page/parts.hpp"

namespace trainsim::report {

namespace {

/// What of a run's JSON result pages show beside that of other runs.
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

}  // namespace

Json shown_results(const Json& result) {
  Json part = Json::object();
  for (const std::string_view key : kResults) {
    if (const auto found = result.find(key); found != result.end()) part[std::string(key)] = *found;
  }
  return part;
}

Json what_ifs_json(const Comparison& comparison) {
  Json list = Json::array();
  for (std::size_t r = 1; r < comparison.runs.size(); ++r) {
    const ComparedRun& base = comparison.runs.front();
    const ComparedRun& run = comparison.runs[r];
    list.push_back({{"change", run.label},
                    {"set", run.overrides},
                    {"inputs", inputs_json({{base, run}})},
                    {"difference", difference_json(difference(base.figures, run.figures))},
                    {"result", shown_results(Json::parse(run.json))}});
  }
  return list;
}

}  // namespace trainsim::report
