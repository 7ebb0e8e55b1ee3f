// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/sweep_batch.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace trainsim::cli {

namespace {

constexpr std::size_t kMostPoints = 50;

bool is_of_run(const std::string& override_text) {
  return override_text.starts_with("run.") || override_text.starts_with("run=");
}

/// Points by the overrides that decide about their step.
std::map<std::vector<std::string>, PointBatch> points_by_step(const sweep::Sweep& sweep,
                                                              const std::vector<std::size_t>& points) {
  std::map<std::vector<std::string>, PointBatch> steps;
  for (const std::size_t point : points) {
    std::vector<std::string> overrides = sweep.overrides(point);
    std::erase_if(overrides, is_of_run);
    steps[std::move(overrides)].push_back(point);
  }
  return steps;
}

}  // namespace

std::vector<PointBatch> batches_of(const sweep::Sweep& sweep, const std::vector<std::size_t>& points,
                                   std::size_t workers) {
  std::vector<PointBatch> batches;
  for (const auto& [overrides, all] : points_by_step(sweep, points)) {
    const std::size_t share = (all.size() + workers - 1) / workers;
    const std::size_t size = std::min(share, kMostPoints);
    for (std::size_t begin = 0; begin < all.size(); begin += size) {
      const std::size_t end = std::min(begin + size, all.size());
      batches.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                           all.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  std::sort(batches.begin(), batches.end());
  return batches;
}

}  // namespace trainsim::cli
