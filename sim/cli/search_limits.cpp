// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/search_limits.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/report/summary.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

namespace {

/// Whether memory alone decides on a limit, so that it is known before the simulation.
bool is_about_memory(const std::string& limit) {
  const std::string name = report::asserted_name(limit);
  return name == "peak_memory_bytes" || name == "peak_reserved_bytes" || name == "memory_headroom_bytes";
}

/// Whether a limit keeps something small that only grows as more is known of a plan.
bool is_upper_limit(const std::string& limit) {
  const std::string name = report::asserted_name(limit);
  return (name == "step_time_s" || name == "peak_memory_bytes") && limit.find('<') != std::string::npos;
}

/// Throws InputError if a limit can't be read or is not about a step.
void check_limit(const std::string& limit) {
  try {
    report::check_assertion_early(limit);
  } catch (const InputError& error) {
    std::string text = error.what();
    const std::string option = "--assert";
    if (text.starts_with(option)) text.replace(0, option.size(), "--limit");
    throw InputError(text);
  }
  if (report::asserted_name(limit).starts_with("run.")) {
    throw InputError(
        "--limit '" + limit +
        "': error: search simulates one step of each plan and no whole run; limit what a step has, "
        "such as tokens_per_s");
  }
}

/// A summary of which nothing is known yet.
report::Summary blank_summary() {
  report::Summary summary;
  summary.plan.global_batch_size = 1;
  return summary;
}

}  // namespace

SearchLimits::SearchLimits(std::vector<std::string> limits) : limits_(std::move(limits)) {
  for (const std::string& limit : limits_) check_limit(limit);
}

std::string SearchLimits::broken_by_bounds(Seconds step_time, Bytes peak) const {
  report::Summary summary = blank_summary();
  summary.step_time = step_time;
  summary.peak_memory = peak;
  const auto broken = std::find_if(limits_.begin(), limits_.end(), [&](const std::string& limit) {
    return is_upper_limit(limit) && !report::check_assertion(summary, limit).holds;
  });
  return broken == limits_.end() ? "" : *broken;
}

std::string SearchLimits::broken_by_memory(Bytes peak, Bytes reserved, Bytes headroom) const {
  report::Summary summary = blank_summary();
  summary.peak_memory = peak;
  summary.peak_reserved = reserved;
  summary.memory_headroom = headroom;
  const auto broken = std::find_if(limits_.begin(), limits_.end(), [&](const std::string& limit) {
    return is_about_memory(limit) && !report::check_assertion(summary, limit).holds;
  });
  return broken == limits_.end() ? "" : *broken;
}

}  // namespace trainsim::cli
