// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <csignal>

namespace trainsim::cli {

/// While it lives, Ctrl-C (SIGINT) or SIGTERM is noted instead of ending the program, so that what has been
/// found can be shown. A second one ends it as ever. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether one has come.
  static bool interrupted();

 private:
  struct sigaction old_interrupt_ = {};
  struct sigaction old_terminate_ = {};
};

}  // namespace trainsim::cli
