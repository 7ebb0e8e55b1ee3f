// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/cli/variant.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/comparison.hpp"

namespace trainsim::cli {

/// A configuration that is simulated in a process of its own.
struct Variation {
  /// What it is called in tables and messages.
  std::string label;
  Overrides overrides;
  config::Experiment experiment;
};

/// How variations are simulated.
struct VariationOptions {
  /// As --fold.
  bool fold = true;
  /// Processes at a time.
  std::size_t workers = 1;
  /// Gets a share in [0, 1].
  std::function<void(double)> progress = [](double) {};
};

/// Simulates each variation and calls its figures "A", "B", …, beginning with number `first`. The order is
/// that of `variations`, whatever ends first. Not to be called after SimGrid has run in this process. Throws
/// std::runtime_error when one fails.
std::vector<report::ComparedRun> simulate_variations(const std::vector<Variation>& variations,
                                                     const VariationOptions& options, std::size_t first = 0);

}  // namespace trainsim::cli
