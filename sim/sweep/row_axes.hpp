// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "sim/sweep/row.hpp"

namespace trainsim::sweep {

/// The varied keys of a row, which are the columns before the results.
std::vector<std::string> keys_of(const Row& row);

/// Varied keys that change together, and their values, as rows show them: one key of --vary, those of --zip,
/// or those of a list of plans that does not hold every combination.
struct RowAxis {
  std::vector<std::string> keys;
  /// Values by position and key; empty where a plan leaves its key as the configuration has it.
  std::vector<std::vector<std::string>> values;
  /// Of each position, ascending, if there is one key whose values are numbers of one unit; else empty.
  std::vector<double> numbers;
  /// Position of each row.
  std::vector<std::size_t> positions;
};

/// The axes of rows, in the order of their keys. Two keys are of different axes when rows have every
/// combination of their values. Keys with the same value in all rows are left out.
std::vector<RowAxis> axes_of(const std::vector<Row>& rows);

}  // namespace trainsim::sweep
