// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <sys/types.h>

#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// Simulates an experiment unfolded in a child process, beside the folded run of this one, because SimGrid
/// can run only once in a process.
class FoldingCheck {
 public:
  /// Starts the child. REQUIRES: SimGrid has not run in this process. Throws std::runtime_error when it
  /// can't.
  explicit FoldingCheck(const config::Experiment& experiment);
  ~FoldingCheck();
  FoldingCheck(const FoldingCheck&) = delete;
  FoldingCheck& operator=(const FoldingCheck&) = delete;

  /// Waits for the child and compares. Returns a sentence for the result; throws std::runtime_error when step
  /// times differ by more than 1e-9 of themselves or the memory of a rank by a byte.
  std::string compare(const report::Summary& folded);

 private:
  pid_t child_ = -1;
  int result_ = -1;
};

}  // namespace trainsim::cli
