// SPDX-License-Identifier: Apache-2.0
#include "sim/base/spelling.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace trainsim {

namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; case does not matter.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: the swap of neighbours looks two rows back.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped =
          i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// Words longer than this are nobody's typing error, and comparing them would take long.
constexpr std::size_t kLongestWord = 80;

/// Lists of numbers up to this length are shown whole.
constexpr std::size_t kLongestNumberList = 10;
/// Of longer ones, so many are shown at the start and at the end.
constexpr std::size_t kShownFirst = 6;
constexpr std::size_t kShownLast = 2;

}  // namespace

std::string closest_match(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongestWord) return "";
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string match;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    match = candidate;
  }
  return match;
}

std::string join_alternatives(const std::vector<std::string>& words) {
  std::string joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) joined += i + 1 == words.size() ? " or " : ", ";
    joined += words[i];
  }
  return joined;
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::string nearest_multiples(std::int64_t number, std::int64_t unit) {
  const std::int64_t below = number / unit * unit;
  const std::string above = std::to_string(below + unit);
  return below == 0 ? above : std::to_string(below) + " or " + above;
}

std::string join_numbers(const std::vector<std::int64_t>& numbers) {
  std::string joined;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool cut = numbers.size() > kLongestNumberList;
    if (cut && i > kShownFirst && i < numbers.size() - kShownLast) continue;
    if (i > 0) joined += ", ";
    joined += cut && i == kShownFirst ? "…" : std::to_string(numbers[i]);
  }
  return joined;
}

}  // namespace trainsim
