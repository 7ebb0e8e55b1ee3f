// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_base.hpp"

#include <string>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/auto_recompute.hpp"

namespace trainsim::cli {

PlanBase read_plan_base(const Subject& subject, const char* command) {
  PlanBase result{subject, config::load(subject.name, subject.overrides, config::Scope::kStep), {}};
  config::Experiment& experiment = result.experiment;
  const std::string where = subject.name + ": error: ";
  if (!experiment.plan.profile.empty()) {
    throw InputError(where +
                     "plan.profile: measured times of one plan's stages say nothing of other plans; " +
                     command + " needs a configuration without it");
  }
  if (experiment.network == config::NetworkMode::kFree || experiment.network == config::NetworkMode::kStep) {
    throw InputError(
        where + "simulation.network: " + command +
        " compares plans by what their communication costs; write flow, or ideal for no contention");
  }
  if (experiment.plan.recompute.automatic) {
    choose_recomputation(experiment);
    result.subject.overrides.push_back("plan.recompute=" +
                                       search::recompute_value(experiment.plan.recompute));
  }
  // Steps with jitter would tell plans apart by chance.
  experiment.jitter = {};
  search::Base& base = result.base;
  base.plan = experiment.plan;
  base.model = experiment.model;
  base.cluster = experiment.cluster;
  base.open_keys.reserve(experiment.defaults.size());
  for (const auto& [key, value] : experiment.defaults) base.open_keys.push_back(key);
  return result;
}

}  // namespace trainsim::cli
