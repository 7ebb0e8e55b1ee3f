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

std::optional<config::Experiment> variant(const Subject& subject, const Overrides& changes) {
  try {
    config::Experiment experiment = config::load(subject.name, joined(subject.overrides, changes));
    choose_recomputation(experiment);
    return experiment;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace trainsim::cli
