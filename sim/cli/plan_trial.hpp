// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/search.hpp"

namespace trainsim::cli {

/// What a step of a few micro-batches tells of a plan, in a fraction of the time that all of them take.
struct ShortTrial {
  /// Lower bound of the step time without contention.
  Seconds bound = 0;
  /// Peak of the fullest rank in the short step; no more than in the whole.
  Bytes peak = 0;
};
ShortTrial try_short_step(const config::Experiment& experiment);

/// A plan with its memory, and its step time without contention if it fits.
struct RankedTrial {
  report::Verdict verdict = report::Verdict::kFits;
  Bytes peak = 0;
  Bytes reserved = 0;
  Seconds step_time = 0;
};
RankedTrial try_without_contention(const config::Experiment& experiment);

/// The whole simulation. REQUIRES: not called twice in a process if links are simulated.
report::PlanResult try_in_full(const config::Experiment& experiment);

/// The same, and the first of some limits ("bubble_ratio<=0.1") that does not hold; empty if all do.
struct FullTrial {
  report::PlanResult result;
  std::string broken_limit;
};
FullTrial try_in_full(const config::Experiment& experiment, const std::vector<std::string>& limits);

/// Numbers of a result as text, for the way from a worker process, and back. Plan, overrides and comparison
/// are not in it.
std::string packed(const report::PlanResult& result);
report::PlanResult unpacked(const std::string& text);

}  // namespace trainsim::cli
