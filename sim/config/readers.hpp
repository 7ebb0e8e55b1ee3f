// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/config/form.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/utf8.hpp"
#include "sim/config/value.hpp"

namespace trainsim::config {

/// How one kind of value is read.
template <class T>
struct Reader {
  /// What stands here when all is well, such as "a count such as 8".
  std::string expects;
  /// Reads a value, range check included.
  std::function<Parsed<T>(const Value&)> parse;
  /// The same for programs.
  Form form = {};
};

/// Bounds of a count, both legal.
struct CountRange {
  std::int64_t least = 1;
  std::int64_t most = 1'000'000'000;
};

/// Bounds of a number; whether the lower one is legal itself. The upper one always is.
struct NumberRange {
  double least = 0;
  double most = 1e30;
  bool least_is_legal = true;
};

/// A fraction of a peak: more than 0, at most 1.
inline constexpr NumberRange kEfficiency = {0.0, 1.0, false};
/// A rate: from a kilobyte per second to an exabyte, far beyond any hardware on both sides.
inline constexpr NumberRange kRateRange = {1e3, 1e18, true};
/// A quantity that must be more than 0.
inline constexpr NumberRange kPositive = {0.0, 1e30, false};

/// A word for every legal choice.
template <class E>
using Words = std::vector<std::pair<std::string, E>>;

/// Why a value is no plain scalar (a list, nothing, text with ${…}), ending in what is expected; empty if it
/// is one. Text in quotes passes only with `quotes_are_fine`.
std::string scalar_fault(const Value& value, const std::string& expects, bool quotes_are_fine);

/// Any text.
Reader<std::string> as_text();
/// A whole number in a range.
Reader<std::int64_t> as_count(CountRange range = {});
/// A number without unit.
Reader<double> as_number(NumberRange range = {});
/// A quantity with a unit of this dimension, in base units.
Reader<double> as_quantity(Dimension dimension, NumberRange range = kPositive);
/// true or false.
Reader<bool> as_flag();

/// The error for a word that is no choice: says when it is known but `unsupported`, else what may be meant.
std::string choice_fault(const std::string& word, const std::vector<std::string>& legal,
                         const std::vector<std::string>& unsupported);

/// One of the words. `unsupported` ones exist elsewhere and get an error of their own.
template <class E>
Reader<E> as_choice(const Words<E>& words, const std::vector<std::string>& unsupported = {}) {
  std::vector<std::string> legal;
  for (const auto& [word, meaning] : words) legal.push_back(word);
  const std::string expects = (legal.size() > 1 ? "one of " : "") + join_alternatives(legal);
  const auto parse = [words, legal, unsupported, expects](const Value& value) {
    std::string fault = scalar_fault(value, expects, true);
    if (!fault.empty()) return Parsed<E>::failed(std::move(fault));
    const auto found =
        std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.first == value.text; });
    if (found == words.end()) return Parsed<E>::failed(choice_fault(value.text, legal, unsupported));
    return Parsed<E>::of(found->second);
  };
  Form form;
  form.kind = Form::Kind::kChoice;
  form.words = legal;
  return {expects, parse, form};
}

}  // namespace trainsim::config
