// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/progress_bar.hpp"

#include <cstdio>
#include <string>

#include <unistd.h>

namespace trainsim::cli {

namespace {

constexpr double kQuietSeconds = 1.0;
constexpr double kRedrawSeconds = 0.1;
constexpr int kWidth = 40;

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace

ProgressBar::ProgressBar(bool enabled) : enabled_(enabled && isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::update(double share, const std::string& done) {
  const double elapsed = seconds_since(begin_);
  if (!enabled_ || elapsed < kQuietSeconds || seconds_since(drawn_) < kRedrawSeconds) return;
  drawn_ = std::chrono::steady_clock::now();
  visible_ = true;
  const int filled = static_cast<int>(share * kWidth);
  const double remaining = share > 0 ? elapsed / share - elapsed : 0;
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kWidth - filled), '.');
  if (done.empty()) {
    std::fprintf(stderr, "\r[%s] %3.0f %%  %.0f s left ", bar.c_str(), 100 * share, remaining);
  } else {
    std::fprintf(stderr, "\r[%s] %3.0f %%  %-*.*s", bar.c_str(), 100 * share, kWidth, kWidth, done.c_str());
  }
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (visible_) std::fprintf(stderr, "\r%*s\r", 2 * kWidth + 10, "");
  visible_ = false;
}

}  // namespace trainsim::cli
