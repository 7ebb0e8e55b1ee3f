// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace trainsim::report {

/// The Pareto front of points of which both numbers are to be small: indices of those that no other beats,
/// which is to be no worse in both and better in one; in the order of the first number.
std::vector<std::size_t> pareto_front(const std::vector<std::pair<double, double>>& points);

}  // namespace trainsim::report
