// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/experiment.hpp"

namespace trainsim::cli {

/// `--set` overrides.
using Overrides = std::vector<std::string>;

/// A configuration that others are derived from: its file or name, and the overrides it already has.
struct Subject {
  std::string name;
  Overrides overrides;
};

Overrides joined(Overrides base, const Overrides& more);
/// "plan.micro_batch_size=2".
std::string assignment(const char* key, std::int64_t value);
/// Another split of the same GPUs and batch; what is left of the GPUs is data parallel.
Overrides with_split(const plan::ParallelPlan& plan, std::int64_t tensor, std::int64_t pipeline);
/// The configuration with changes, its recomputation chosen; nothing if they make it illegal.
std::optional<config::Experiment> variant(const Subject& subject, const Overrides& changes);

}  // namespace trainsim::cli
