// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/cli/variant.hpp"
#include "sim/config/experiment.hpp"
#include "sim/search/candidate.hpp"

namespace trainsim::cli {

/// A configuration from which other plans are made.
struct PlanBase {
  /// With `recompute: auto` replaced by what it means for the configuration's own plan.
  Subject subject;
  config::Experiment experiment;
  search::Base base;
};

/// Reads a configuration for a command that tries other plans. Throws InputError when it can't be read, and
/// when other plans can't be compared with it: measured stage times belong to one plan, and communication
/// that is free or goes step by step is for checks.
PlanBase read_plan_base(const Subject& subject, const char* command);

}  // namespace trainsim::cli
