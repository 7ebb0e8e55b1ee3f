// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>

namespace trainsim::cli {

/// A progress bar on standard error, drawn only on a terminal and only once a run has taken a second.
class ProgressBar {
 public:
  explicit ProgressBar(bool enabled);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows a share in [0, 1], and in words what has been done; without them how long it will go on.
  void update(double share, const std::string& done = "");
  /// Removes the bar.
  void clear();

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_ = begin_;
  bool enabled_;
  bool visible_ = false;
};

}  // namespace trainsim::cli
