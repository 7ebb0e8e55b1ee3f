// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/sweep.hpp"

#include <utility>

#include "sim/base/diagnostics.hpp"

namespace trainsim::sweep {

namespace {

/// Whether both set the same value, or one a part of what the other sets.
bool collide(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".");
}

[[noreturn]] void fail_collision(const std::string& key, const std::string& other) {
  throw InputError("trainsim: error: " + other +
                   (key == other ? " is varied twice" : " and " + key + " overlap") +
                   "; vary it once, with all of its values");
}

}  // namespace

Sweep::Sweep(std::vector<Axis> axes) : axes_(std::move(axes)) {
  for (const Axis& axis : axes_) {
    for (const std::string& key : axis.keys) {
      for (const std::string& other : keys_) {
        if (collide(key, other)) fail_collision(key, other);
      }
      keys_.push_back(key);
    }
    if (axis.rows.size() > kMostPoints / size_) {
      throw InputError("trainsim: error: the sweep has more than " + std::to_string(kMostPoints) +
                       " points; vary fewer keys or take larger steps");
    }
    size_ *= axis.rows.size();
  }
  if (keys_.empty()) {
    throw InputError(
        "trainsim: error: nothing is varied; give at least one --vary KEY=VALUES, as in "
        "--vary plan.micro_batch_size=1,2,4, or --zip or --plans");
  }
}

std::vector<std::string> Sweep::origins() const {
  std::vector<std::string> origins;
  for (const Axis& axis : axes_) origins.insert(origins.end(), axis.keys.size(), axis.origin);
  return origins;
}

std::vector<std::optional<std::string>> Sweep::values(std::size_t point) const {
  std::vector<std::optional<std::string>> values;
  std::size_t block = size_;
  for (const Axis& axis : axes_) {
    block /= axis.rows.size();
    const auto& row = axis.rows[point / block % axis.rows.size()];
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

std::vector<std::string> Sweep::overrides(std::size_t point) const {
  const std::vector<std::optional<std::string>> set = values(point);
  std::vector<std::string> overrides;
  overrides.reserve(set.size());
  for (std::size_t k = 0; k < set.size(); ++k) {
    if (!set[k]) continue;
    std::string text = keys_[k];
    text += "=" + *set[k];
    overrides.push_back(std::move(text));
  }
  return overrides;
}

std::vector<std::size_t> Sweep::points_with_all_keys() const {
  std::vector<std::size_t> points;
  std::vector<bool> seen(keys_.size(), false);
  for (std::size_t point = 0; point < size_; ++point) {
    const std::vector<std::optional<std::string>> set = values(point);
    bool adds = false;
    bool all = true;
    for (std::size_t k = 0; k < set.size(); ++k) {
      adds = adds || (set[k].has_value() && !seen[k]);
      seen[k] = seen[k] || set[k].has_value();
      all = all && seen[k];
    }
    if (adds) points.push_back(point);
    if (all) break;
  }
  return points;
}

std::vector<std::size_t> points_of(const Shard& shard, std::size_t size) {
  std::vector<std::size_t> points;
  for (std::size_t point = shard.index - 1; point < size; point += shard.count) points.push_back(point);
  return points;
}

}  // namespace trainsim::sweep
