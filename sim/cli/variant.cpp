// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/variant.hpp"

#include "sim/base/diagnostics.hpp"
#include "sim/cli/auto_recompute.hpp"

namespace trainsim::cli {

Overrides joined(Overrides base, const Overrides& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

std::string assignment(const char* key, std::int64_t value) {
  return std::string(key) + "=" + std::to_string(value);
}

Overrides with_split(const plan::ParallelPlan& plan, std::int64_t tensor, std::int64_t pipeline) {
  const std::int64_t data = plan.gpus / (tensor * plan.context_parallel * pipeline);
  return {assignment("plan.tensor_parallel", tensor), assignment("plan.pipeline_parallel", pipeline),
          assignment("plan.data_parallel", data),
          assignment("plan.global_batch_size", plan.global_batch_size)};
}

std::optional<config::Experiment> variant(const Subject& subject, const Overrides& changes) {
  try {
    config::Experiment experiment =
        config::load(subject.name, joined(subject.overrides, changes), config::Scope::kStep);
    choose_recomputation(experiment);
    return experiment;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace trainsim::cli
