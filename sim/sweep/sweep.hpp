// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/axis.hpp"

namespace trainsim::sweep {

/// Points of a sweep at most.
inline constexpr std::size_t kMostPoints = 1'000'000;

/// The points of a sweep: every combination of the rows of its axes, the last axis changing fastest.
class Sweep {
 public:
  /// Throws InputError without axes, when two of them have the same key, or one is below another
  /// ("plan.recompute" and "plan.recompute.layers"), and when there are too many points.
  explicit Sweep(std::vector<Axis> axes);

  std::size_t size() const { return size_; }
  /// The varied keys, in the order of the axes.
  const std::vector<std::string>& keys() const { return keys_; }
  /// By key, as Axis::origin.
  std::vector<std::string> origins() const;
  /// The values of a point by key; nothing where a plan of a list leaves the key as it is.
  std::vector<std::optional<std::string>> values(std::size_t point) const;
  /// The same as overrides, as for --set.
  std::vector<std::string> overrides(std::size_t point) const;
  /// Points that together set every key that any point sets, so that whoever reads them has seen all keys.
  std::vector<std::size_t> points_with_all_keys() const;

 private:
  std::vector<Axis> axes_;
  std::vector<std::string> keys_;
  std::size_t size_ = 1;
};

/// One of `count` parts of a sweep that run apart from each other.
struct Shard {
  /// From 1 to count.
  std::size_t index = 1;
  std::size_t count = 1;
};

/// The points of a shard: every count-th, because neighbours take about as long as each other.
std::vector<std::size_t> points_of(const Shard& shard, std::size_t size);

}  // namespace trainsim::sweep
