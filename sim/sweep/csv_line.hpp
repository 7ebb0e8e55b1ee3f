// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trainsim::sweep {

/// The cells of a line of comma-separated values; cells in double quotes may hold commas, and quotes that are
/// doubled (RFC 4180). A line break inside of a cell is not supported.
std::vector<std::string> split_csv_line(std::string_view line);

}  // namespace trainsim::sweep
