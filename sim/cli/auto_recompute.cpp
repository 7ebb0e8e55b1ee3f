// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/auto_recompute.hpp"

#include <algorithm>
#include <vector>

#include "sim/cli/simulate.hpp"
#include "sim/cli/variant.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;
using plan::Recompute;
using plan::RecomputeGranularity;
using plan::RecomputeMethod;
using report::Verdict;

Experiment with(Experiment experiment, const Recompute& recompute) {
  experiment.plan.recompute = recompute;
  return experiment;
}

Verdict verdict_of(const Experiment& experiment) {
  return estimate_memory(experiment).verdict;
}

Recompute block_of(std::int64_t layers) {
  return {RecomputeGranularity::kFull, RecomputeMethod::kBlock, layers};
}

/// Whether a verdict is at least as good as wanted.
bool at_least(Verdict verdict, Verdict wanted) {
  return static_cast<int>(verdict) <= static_cast<int>(wanted);
}

std::vector<Recompute> choices(const Experiment& experiment, Verdict wanted) {
  Recompute core{RecomputeGranularity::kSelective};
  Recompute small = core;
  small.modules = {true, false, true, true};
  Recompute mlp = core;
  mlp.modules = {true, true, false, false, experiment.model.experts.active()};
  std::vector<Recompute> fitting;
  for (const Recompute& recompute : {Recompute{}, core, small, mlp}) {
    if (at_least(verdict_of(with(experiment, recompute)), wanted)) fitting.push_back(recompute);
  }
  if (const auto block = fewest_layers(experiment, wanted)) fitting.push_back(*block);
  return fitting;
}

std::string words_for(const Recompute& recompute) {
  switch (recompute.granularity) {
    case RecomputeGranularity::kNone:
      return "none";
    case RecomputeGranularity::kSelective: {
      std::string text;
      for (const std::string& name : plan::module_names(recompute.modules)) {
        if (!text.empty()) text += ", ";
        text += name;
      }
      return "selective of " + text;
    }
    case RecomputeGranularity::kOperators:
      return "operators";
    case RecomputeGranularity::kFull:
      break;
  }
  return "full of the first " + std::to_string(recompute.layers) + " layers of each chunk";
}

std::string sentence(const Recompute& chosen, std::size_t fitting, const std::string& without) {
  const std::string which =
      fitting == 1 ? "the only one that fits" : "the cheapest of " + std::to_string(fitting) + " that fit";
  return "auto chose " + words_for(chosen) + ", " + which + "; without recomputation: " + without + ".";
}

}  // namespace

std::optional<Recompute> fewest_layers(const Experiment& experiment, Verdict wanted) {
  const std::vector<std::int64_t> layers = plan::stage_layers(experiment.plan, experiment.model);
  std::int64_t high = *std::max_element(layers.begin(), layers.end());
  const auto enough = [&](std::int64_t count) {
    return at_least(verdict_of(with(experiment, block_of(count))), wanted);
  };
  if (!enough(high)) return std::nullopt;
  std::int64_t low = 0;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return block_of(high);
}

std::string choose_recomputation(Experiment& experiment) {
  if (!experiment.plan.recompute.automatic) return "";
  experiment.plan.recompute = {};
  const MemoryEstimate without = estimate_memory(experiment);
  const std::string reason =
      report::verdict_reason(without.peak, without.reserved, available_memory(experiment));
  for (const Verdict wanted : {Verdict::kFits, Verdict::kBorderline}) {
    const std::vector<Recompute> fitting = choices(experiment, wanted);
    if (fitting.empty()) continue;
    std::vector<Seconds> times(fitting.size());
    std::transform(fitting.begin(), fitting.end(), times.begin(),
                   [&](const Recompute& recompute) { return ideal_step_time(with(experiment, recompute)); });
    const auto cheapest = std::min_element(times.begin(), times.end()) - times.begin();
    experiment.plan.recompute = fitting[static_cast<std::size_t>(cheapest)];
    return sentence(experiment.plan.recompute, fitting.size(), reason);
  }
  experiment.plan.recompute.granularity = RecomputeGranularity::kFull;
  return "auto found none with which the plan fits, and took full.";
}

}  // namespace trainsim::cli
