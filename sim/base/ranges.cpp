// SPDX-License-Identifier: Apache-2.0
#include "sim/base/ranges.hpp"

#include <cstddef>

namespace trainsim {

std::string join_ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1) ++i;
    text.append(text.empty() ? "" : ", ").append(std::to_string(numbers[first]));
    if (i > first) text.append("-").append(std::to_string(numbers[i]));
  }
  return text;
}

}  // namespace trainsim
