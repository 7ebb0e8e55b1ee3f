// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/variant.hpp"
#include "sim/report/search.hpp"

namespace trainsim::cli {

/// What is searched for, and where.
struct SearchRequest {
  Subject subject;
  /// How many plans are wanted, >= 1.
  std::size_t top = 10;
  report::Objective objective = report::Objective::kStepTime;
  /// Dollars per GPU-hour.
  std::optional<double> price;
  /// "NAME OP NUMBER", as for --assert.
  std::vector<std::string> limits;
  /// "SETTING=VALUES".
  std::vector<std::string> vary;
  /// Numbers of GPUs to try; empty = the configuration's, or with the objective gpus that and its halves.
  std::vector<std::int64_t> gpus;
  /// Whether plans whose memory is borderline are taken.
  bool borderline = false;
  /// Worker processes, >= 1. Results do not depend on it.
  std::size_t workers = 1;
};

/// Told how far the search is: a share in [0, 1], and what has been done in words.
using SearchProgress = std::function<void(double share, const std::string& done)>;

/// The best plans of a configuration's model, cluster and batch. Throws InputError for a request that makes
/// no sense. Once Interruption has noted a signal the search stops, and returns what it has as incomplete.
report::SearchReport search_plans(const SearchRequest& request, const SearchProgress& progress);

}  // namespace trainsim::cli
