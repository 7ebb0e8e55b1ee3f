// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trainsim::sweep {

/// Values that one list may stand for at most.
inline constexpr std::size_t kMostValues = 100'000;

/// Splits at commas that are outside of brackets, braces and quotes, and trims blanks.
std::vector<std::string> split_list(std::string_view text);

/// The values that a list stands for, ranges written out: "1,2,4"; "1..8" (every whole number), "1..9+2"
/// (steps of 2), "1..64*2" (doubling), all up to and including the second number if it is hit. Ends may have
/// a unit, given once or twice: "100..400*2 Gb/s". What does not begin with a digit, or has no "..", is one
/// value. `option` (such as "--vary plan.micro_batch_size") begins the messages. Throws InputError for an
/// empty list, an empty value or a bad range.
std::vector<std::string> expand_values(std::string_view text, const std::string& option);

}  // namespace trainsim::sweep
