// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "sim/validation/evaluation.hpp"

namespace trainsim::cli {

/// How measured runs are evaluated.
struct EvaluationOptions {
  /// Worker processes.
  std::size_t workers = 1;
  /// Overrides ("key.path=value") for the configuration of every run.
  std::vector<std::string> overrides;
  bool show_progress = false;
};

/// Reads all measured runs of a folder (or one file), simulates them and compares. Throws InputError when
/// there is nothing to read.
validation::Evaluation evaluate(const std::string& folder, const EvaluationOptions& options);

}  // namespace trainsim::cli
