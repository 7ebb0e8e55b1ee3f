// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainsim {

/// The candidate closest to `word` in edit distance (transpositions count as one), or "" when none is close
/// enough to be meant: at most a third of the word's length, and at least one edit is always allowed.
std::string closest_match(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b or c"; "" for an empty list.
std::string join_alternatives(const std::vector<std::string>& words);

/// All divisors of n in ascending order. REQUIRES: n >= 1.
std::vector<std::int64_t> divisors(std::int64_t n);

/// The multiples of a unit on both sides of a number, "8 or 12"; only the upper one when the lower is 0.
/// REQUIRES: number >= 0, unit >= 1.
std::string nearest_multiples(std::int64_t number, std::int64_t unit);

/// "1, 2, 4, 8": numbers separated by commas; a long list is cut in the middle with "…".
std::string join_numbers(const std::vector<std::int64_t>& numbers);

}  // namespace trainsim
