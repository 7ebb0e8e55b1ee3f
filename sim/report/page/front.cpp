// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/front.hpp"

#include <algorithm>
#include <numeric>

namespace trainsim::report {

std::vector<std::size_t> pareto_front(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&points](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::size_t> front;
  for (const std::size_t index : order) {
    const bool equals_last = !front.empty() && points[index] == points[front.back()];
    if (front.empty() || equals_last || points[index].second < points[front.back()].second)
      front.push_back(index);
  }
  return front;
}

}  // namespace trainsim::report
