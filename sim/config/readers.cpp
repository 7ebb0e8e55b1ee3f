// SPDX-License-Identifier: Apache-2.0
#include "sim/config/readers.hpp"

namespace trainsim::config {

namespace {

/// Why a count is out of range; empty if it is in.
std::string range_fault(std::int64_t count, std::string_view text, CountRange range) {
  const std::string instead = ", not " + clip(text);
  if (count > range.most) return "must be at most " + std::to_string(range.most) + instead;
  if (count >= range.least) return "";
  return (range.least == 1 ? "must be a positive integer"
                           : "must be at least " + std::to_string(range.least)) +
         instead;
}

/// The same for a number.
std::string range_fault(double number, std::string_view text, NumberRange range, std::string_view unit) {
  const std::string instead = ", not " + clip(text);
  const auto bound = [unit](double value) {
    return format_number(value) + (value == 0 || unit.empty() ? "" : " " + std::string(unit));
  };
  if (number > range.most) return "must be at most " + bound(range.most) + instead;
  const bool high_enough = range.least_is_legal ? number >= range.least : number > range.least;
  if (high_enough) return "";
  return "must be " + std::string(range.least_is_legal ? "at least " : "more than ") + bound(range.least) +
         instead;
}

/// Reads a scalar with `parse` after the checks that all scalars but text have in common.
template <class T, class Parse>
std::function<Parsed<T>(const Value&)> scalar_parser(const std::string& expects, bool quotes_are_fine,
                                                     Parse parse) {
  return [expects, quotes_are_fine, parse](const Value& value) {
    std::string fault = scalar_fault(value, expects, quotes_are_fine);
    return fault.empty() ? parse(value.text) : Parsed<T>::failed(std::move(fault));
  };
}

/// A form with bounds.
Form bounded(Form::Kind kind, NumberRange range, Dimension dimension = Dimension::kSize) {
  return {kind, range.least, range.most, range.least_is_legal, dimension};
}

template <class T, class... Range>
Parsed<T> checked(Parsed<T> parsed, std::string_view text, Range... range) {
  if (!parsed.value) return parsed;
  std::string fault = range_fault(*parsed.value, text, range...);
  return fault.empty() ? parsed : Parsed<T>::failed(std::move(fault));
}

}  // namespace

std::string scalar_fault(const Value& value, const std::string& expects, bool quotes_are_fine) {
  if (value.kind == Kind::kNull) return "has no value; it needs " + expects;
  if (value.kind != Kind::kScalar) return "needs " + expects + ", not " + describe(value);
  if (value.text.find("${") != std::string::npos) {
    return clip(value.text) + " is a variable, and variables are not filled in here; write the value itself";
  }
  if (value.text.empty()) return "needs " + expects + ", not an empty text";
  if (value.quoted && !quotes_are_fine)
    return "needs " + expects + ", but in quotes it is text; remove the quotes";
  return "";
}

Reader<std::string> as_text() {
  const std::string expects = "a text";
  const auto parse = [](const std::string& text) { return Parsed<std::string>::of(text); };
  return {expects, scalar_parser<std::string>(expects, true, parse), {Form::Kind::kText}};
}

Reader<std::int64_t> as_count(CountRange range) {
  const std::string expects =
      "a count such as " + std::to_string(std::clamp<std::int64_t>(8, range.least, range.most));
  const auto parse = [range](const std::string& text) { return checked(parse_count(text), text, range); };
  const NumberRange bounds = {static_cast<double>(range.least), static_cast<double>(range.most)};
  return {expects, scalar_parser<std::int64_t>(expects, false, parse), bounded(Form::Kind::kCount, bounds)};
}

Reader<double> as_number(NumberRange range) {
  const std::string expects = "a number such as " + format_number(std::max(0.5, range.least));
  const auto parse = [range](const std::string& text) {
    return checked(parse_number(text), text, range, std::string_view());
  };
  return {expects, scalar_parser<double>(expects, false, parse), bounded(Form::Kind::kNumber, range)};
}

Reader<double> as_quantity(Dimension dimension, NumberRange range) {
  const std::string expects = dimension_name(dimension) + " such as " + dimension_example(dimension);
  const auto parse = [dimension, range](const std::string& text) {
    return checked(parse_quantity(text, dimension), text, range, base_unit(dimension));
  };
  return {expects, scalar_parser<double>(expects, true, parse),
          bounded(Form::Kind::kQuantity, range, dimension)};
}

Reader<bool> as_flag() {
  const std::string expects = "true or false";
  const auto parse = [](const std::string& text) { return parse_flag(text); };
  return {expects, scalar_parser<bool>(expects, false, parse), {Form::Kind::kFlag}};
}

std::string choice_fault(const std::string& word, const std::vector<std::string>& legal,
                         const std::vector<std::string>& unsupported) {
  const std::string list = "legal here: " + join_alternatives(legal);
  if (std::find(unsupported.begin(), unsupported.end(), word) != unsupported.end()) {
    return clip(word) + " is not supported by this version; " + list;
  }
  const std::string meant = closest_match(word, legal);
  return "unknown word " + clip(word) + (meant.empty() ? "; " : "; did you mean " + meant + "? ") + list;
}

}  // namespace trainsim::config
