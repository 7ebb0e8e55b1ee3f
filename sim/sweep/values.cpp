// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "sim/base/diagnostics.hpp"
#include "sim/base/text.hpp"

namespace trainsim::sweep {

namespace {

/// Whole numbers up to here are exact as floating-point numbers.
constexpr double kMostExact = 9007199254740992.0;
/// By how much a sum or product may miss the end of its range through rounding.
constexpr double kSlack = 1e-9;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A number with what stands behind it, such as " Gb/s".
struct Quantity {
  double number = 0;
  bool whole = true;
  std::string unit;
};

/// Reads a range from left to right.
class RangeReader {
 public:
  explicit RangeReader(std::string_view text) : rest_(text) {}

  /// A number without sign and a unit, if there is a number here.
  std::optional<Quantity> quantity() {
    const std::size_t length = number_length();
    if (length == 0) return std::nullopt;
    const std::string digits(rest_.substr(0, length));
    rest_.remove_prefix(length);
    Quantity quantity;
    quantity.number = std::strtod(digits.c_str(), nullptr);
    quantity.whole = std::all_of(digits.begin(), digits.end(), is_digit);
    quantity.unit = unit();
    return quantity;
  }

  bool skip(std::string_view word) {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return true;
  }

  bool at_end() const { return trimmed(rest_).empty(); }

 private:
  std::size_t digits_from(std::size_t begin) const {
    std::size_t end = begin;
    while (end < rest_.size() && is_digit(rest_[end])) ++end;
    return end - begin;
  }

  std::size_t number_length() const {
    std::size_t length = digits_from(0);
    if (length == 0) return 0;
    // The point of "1.5", not the first of "1..5".
    if (length + 1 < rest_.size() && rest_[length] == '.' && is_digit(rest_[length + 1])) {
      length += 1 + digits_from(length + 1);
    }
    if (length < rest_.size() && (rest_[length] == 'e' || rest_[length] == 'E')) {
      const bool sign = length + 1 < rest_.size() && (rest_[length + 1] == '-' || rest_[length + 1] == '+');
      const std::size_t exponent = length + (sign ? 2 : 1);
      if (digits_from(exponent) > 0) length = exponent + digits_from(exponent);
    }
    return length;
  }

  std::string unit() {
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] == ' ') ++end;
    const std::size_t letters = end;
    while (end < rest_.size() &&
           (std::isalpha(static_cast<unsigned char>(rest_[end])) != 0 || rest_[end] == '/'))
      ++end;
    if (end == letters) return "";
    std::string found(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return found;
  }

  std::string_view rest_;
};

/// A range, taken apart: values first, first + step, … or first, first * step, … up to last.
struct Range {
  double first = 0;
  double last = 0;
  double step = 1;
  bool multiplies = false;
  bool whole = true;
  std::string unit;
};

[[noreturn]] void fail(const std::string& option, const std::string& message) {
  throw InputError("trainsim: error: " + option + ": " + message);
}

/// The unit that all parts of a range have, as far as they have one; nothing if they differ.
std::optional<std::string> common_unit(const std::array<std::string, 3>& units) {
  std::string common;
  for (const std::string& unit : units) {
    if (unit.empty()) continue;
    if (!common.empty() && trimmed(unit) != trimmed(common)) return std::nullopt;
    common = unit;
  }
  return common;
}

Range parse_range(std::string_view text, const std::string& option) {
  const std::string quoted = "'" + std::string(text) + "'";
  RangeReader reader(text);
  const std::optional<Quantity> first = reader.quantity();
  const bool dots = reader.skip("..");
  const std::optional<Quantity> last = dots ? reader.quantity() : std::nullopt;
  Quantity step{1, true, ""};
  bool multiplies = false;
  bool complete = first && last;
  if (complete && !reader.at_end()) {
    multiplies = reader.skip("*");
    complete = multiplies || reader.skip("+");
    const std::optional<Quantity> given = complete ? reader.quantity() : std::nullopt;
    complete = given.has_value();
    step = given.value_or(step);
  }
  if (!complete || !reader.at_end())
    fail(option, quoted + " is no range; write 1..8, 1..9+2 (steps of 2) or 1..64*2 (doubling)");
  const auto unit = common_unit({first->unit, last->unit, step.unit});
  if (!unit) fail(option, "the range " + quoted + " has different units; write both ends in the same one");
  if (last->number < first->number)
    fail(option, "the range " + quoted + " ends below its start; write the smaller number first");
  if (multiplies && (step.number <= 1 || first->number <= 0))
    fail(option, "the range " + quoted + " does not grow; '*' needs a factor above 1 and a start above 0");
  if (step.number <= 0) fail(option, "the range " + quoted + " does not grow; '+' needs a step above 0");
  return {first->number, last->number, step.number, multiplies, first->whole && step.whole, *unit};
}

std::string number_text(double number, bool whole) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.12g", number);
  return text.data();
}

std::vector<std::string> values_of(const Range& range, std::string_view text, const std::string& option) {
  if (range.whole && range.last > kMostExact)
    fail(option, "the range '" + std::string(text) + "' has numbers above 2^53; list them instead");
  std::vector<std::string> values;
  double value = range.first;
  for (std::size_t i = 1; value <= range.last * (1 + (range.whole ? 0 : kSlack)); ++i) {
    if (values.size() == kMostValues) {
      fail(option, "the range '" + std::string(text) + "' has more than " + std::to_string(kMostValues) +
                       " values; take larger steps, such as '*2'");
    }
    values.push_back(number_text(value, range.whole) + range.unit);
    const auto count = static_cast<double>(i);
    value = range.multiplies ? range.first * std::pow(range.step, count) : range.first + count * range.step;
  }
  return values;
}

bool is_range(std::string_view text) {
  return is_digit(text.front()) && text.find("..") != std::string_view::npos;
}

/// Follows brackets and quotes of YAML's flow style.
class Nesting {
 public:
  /// Whether a comma at this place separates values.
  bool outside() const { return depth_ == 0 && quote_ == '\0'; }
  void pass(char c) {
    if (quote_ != '\0') {
      if (c == quote_) quote_ = '\0';
    } else if (c == '"' || c == '\'') {
      quote_ = c;
    } else if (c == '[' || c == '{') {
      ++depth_;
    } else if ((c == ']' || c == '}') && depth_ > 0) {
      --depth_;
    }
  }

 private:
  int depth_ = 0;
  char quote_ = '\0';
};

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  Nesting nesting;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool ends = i == text.size() || (text[i] == ',' && nesting.outside());
    if (i < text.size()) nesting.pass(text[i]);
    if (!ends) continue;
    items.emplace_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return items;
}

std::vector<std::string> expand_values(std::string_view text, const std::string& option) {
  if (trimmed(text).empty()) fail(option, "there are no values; write for example 1,2,4 or 1..64*2");
  std::vector<std::string> values;
  for (const std::string& item : split_list(text)) {
    if (item.empty()) fail(option, "there is an empty value between two commas; remove it, or write null");
    if (is_range(item)) {
      const std::vector<std::string> range = values_of(parse_range(item, option), item, option);
      values.insert(values.end(), range.begin(), range.end());
    } else {
      values.push_back(item);
    }
  }
  return values;
}

}  // namespace trainsim::sweep
