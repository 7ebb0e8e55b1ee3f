// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace trainsim::report {

/// The Pareto front of points of which both numbers are to be small: indices of those that no other beats,
/// which is to be no worse in both and better in one; in the order of the first number.
std::vector<std::size_t> pareto_front(const std::vector<std::pair<double, double>>& points);

/// How a sentence on a front calls things.
struct FrontTexts {
  /// The points: "point that fits", "points that fit".
  std::string one;
  std::string many;
  /// What the last point of a front has: "least memory".
  std::string least;
  /// A point, given by its index, with both of its numbers.
  std::function<std::string(std::size_t)> write;
};

/// What to see in pareto_front(points): its ends, and whether others are beaten; empty without points.
std::string front_sentence(const std::vector<std::pair<double, double>>& points, const FrontTexts& texts);

}  // namespace trainsim::report
