// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/knee.hpp"

#include <algorithm>
#include <cmath>

namespace trainsim::sweep {

double gain_per_doubling(const Trial& a, const Trial& b) {
  return std::pow(b.rate / a.rate, 1 / std::log2(b.size / a.size)) - 1;
}

std::optional<Trial> find_knee(std::vector<Trial> trials) {
  std::sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.size < b.size; });
  std::optional<Trial> knee;
  for (std::size_t i = trials.size(); i-- > 1;) {
    if (gain_per_doubling(trials[i - 1], trials[i]) >= kSmallGain) break;
    knee = trials[i - 1];
  }
  return knee;
}

}  // namespace trainsim::sweep
