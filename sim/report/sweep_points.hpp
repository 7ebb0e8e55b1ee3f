// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/sweep/row.hpp"

namespace trainsim::report {

/// A number of a row; 0 where there is none.
double number_in(const sweep::Row& row, std::string_view column);
/// A text of a row; empty where there is none.
std::string text_in(const sweep::Row& row, std::string_view column);

/// Whether a point is legal, and has results.
bool is_valid(const sweep::Row& row);
/// Whether it is, and fits into memory.
bool fits(const sweep::Row& row);
/// Tokens per second and GPU.
double rate(const sweep::Row& row);

/// "plan.micro_batch_size=2, gpus=64": the varied values.
std::string point_text(const sweep::Row& row);

/// Whether a key is one of the sizes of the batch, for which knees are looked for.
bool is_batch_size(const std::string& key);

/// What points along one size of the batch say.
struct BatchCurve {
  /// Which of the rows is the knee (sweep::find_knee), if there is one.
  std::optional<std::size_t> knee;
  /// Where the knee is, or that there is none, and what memory allows.
  std::vector<std::string> sentences;
};

/// REQUIRES: is_batch_size(key). Rows come in any order; those without results are left out.
BatchCurve batch_curve(const std::string& key, const std::vector<const sweep::Row*>& rows);

}  // namespace trainsim::report
