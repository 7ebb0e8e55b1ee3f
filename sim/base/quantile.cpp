// SPDX-License-Identifier: Apache-2.0
#include "sim/base/quantile.hpp"

#include <algorithm>
#include <cstddef>

namespace trainsim {

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace trainsim
