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

std::string front_sentence(const std::vector<std::pair<double, double>>& points, const FrontTexts& texts) {
  if (points.empty()) return "";
  const std::vector<std::size_t> front = pareto_front(points);
  const std::string first = texts.write(front.front());
  const std::string all = std::to_string(points.size()) + " " + texts.many;
  if (points.size() == 1) return "There is one " + texts.one + ": " + first + ".";
  if (front.size() == 1) return "One of " + all + " beats all others: " + first + ".";
  const bool whole = front.size() == points.size();
  const std::string every = points.size() == 2 ? "Both " + texts.many : "All " + all;
  const std::string on_front = whole ? every : std::to_string(front.size()) + " of " + all;
  const std::string others = whole ? "" : " Each of the others is beaten by one of these.";
  // Points of a front that are equal in one number are so in the other.
  if (points[front.front()] == points[front.back()])
    return on_front + " are equal in both numbers: the first is " + first + "." + others;
  return on_front + " are worth a look, from the fastest, " + first + ", to the one with " + texts.least +
         ", " + texts.write(front.back()) + "." + others;
}

}  // namespace trainsim::report
