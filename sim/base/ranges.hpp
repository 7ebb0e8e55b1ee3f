// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace trainsim {

/// "0-2, 5" from {0, 1, 2, 5}: neighbours that follow each other by one are a range; the order stays.
std::string join_ranges(const std::vector<std::int64_t>& numbers);

}  // namespace trainsim
