// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/cli/sweep_point.hpp"

namespace trainsim::cli {

/// The points of a sweep that one process simulates, and how.
struct SweepTask {
  const SweepBase& base;
  const sweep::Sweep& whole;
  std::string fingerprint;
  /// Ascending.
  std::vector<std::size_t> points;
  std::size_t workers = 1;
  bool show_progress = true;
};

/// How a sweep went.
struct SweepOutcome {
  /// Rows that were handed over.
  std::size_t done = 0;
  /// Points whose simulation failed though nothing is wrong with them.
  std::size_t failed = 0;
  /// The signal that ended it early, or 0.
  int signal = 0;
};

/// Simulates points in parallel and hands over their rows in the order of points, each as soon as those
/// before it are done. After a signal nothing new is begun, and only points are waited for that finished ones
/// wait for, so that all that was finished is handed over. `clear_progress` is given to `receive` for output
/// that goes to a terminal.
SweepOutcome run_sweep(
    const SweepTask& task,
    const std::function<void(sweep::Row row, const std::function<void()>& clear_progress)>& receive);

}  // namespace trainsim::cli
