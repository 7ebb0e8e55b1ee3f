// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// How the constants are varied.
struct UncertaintyOptions {
  /// Samples of all constants together.
  std::size_t samples = 100;
  std::uint64_t seed = 1;
  /// Worker processes.
  std::size_t workers = 1;
};

/// A configuration whose constants are drawn: `config` and `overrides` as for config::load, and what they
/// are.
struct SampledConfig {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<config::Constant> constants;
  /// What `recompute: auto` has become with the constants as they are.
  plan::Recompute recompute;
};

/// Draws a value between `low` and `high` with a triangular density whose top is `mode`, from a number in [0,
/// 1).
double triangular(double low, double mode, double high, double uniform);

/// Simulates a configuration (`config` and `overrides` as for config::load) with the ideal executor, for
/// samples of its constants and for each constant at the ends of its range. Step times are relative to that
/// of `experiment`, which is
/// 1. Constants are drawn independently of each other. `progress` gets a share in [0, 1].
report::Uncertainty relative_uncertainty(const std::string& config, const std::vector<std::string>& overrides,
                                         const config::Experiment& experiment,
                                         const UncertaintyOptions& options,
                                         const std::function<void(double)>& progress);

/// Step times of several configurations on the ideal executor with sampled constants, relative to those of
/// the constants as they are: by configuration and sample. A constant that configurations have in common (the
/// same key and value) has the same value of its range in a sample of each.
std::vector<std::vector<double>> sampled_times(const std::vector<SampledConfig>& configs,
                                               const UncertaintyOptions& options,
                                               const std::function<void(double)>& progress);

}  // namespace trainsim::cli
