// SPDX-License-Identifier: Apache-2.0
#include "sim/config/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

/// A decimal number as written: value = digits * 10^exponent; `rest` is the text behind it.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
  std::string_view rest;
};

std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Moves digits from `text` to `digits`; '_' may stand between two of them.
void take_digits(std::string_view& text, std::string& digits) {
  while (!text.empty() && is_digit(text[0])) {
    digits += text[0];
    text.remove_prefix(1);
    if (text.size() > 1 && text[0] == '_' && is_digit(text[1])) text.remove_prefix(1);
  }
}

/// The exponent at the start of `text`, 0 when there is none. Huge ones are cut: any is out of range then.
std::int64_t take_exponent(std::string_view& text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  std::string_view rest = text.substr(1);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  std::string digits;
  take_digits(rest, digits);
  if (digits.empty()) return 0;
  text = rest;
  const std::int64_t size = digits.size() > 6 ? 1'000'000 : std::stoll(digits);
  return negative ? -size : size;
}

/// The number that `text` begins with, or nothing when it begins with none.
std::optional<Decimal> scan_decimal(std::string_view text) {
  Decimal number;
  number.negative = text.starts_with('-');
  if (number.negative || text.starts_with('+')) text.remove_prefix(1);
  take_digits(text, number.digits);
  if (number.digits.empty()) return std::nullopt;
  const std::size_t whole = number.digits.size();
  if (text.size() > 1 && text[0] == '.' && is_digit(text[1])) {
    text.remove_prefix(1);
    take_digits(text, number.digits);
  }
  number.exponent = take_exponent(text) - static_cast<std::int64_t>(number.digits.size() - whole);
  number.rest = text;
  return number;
}

bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && (is_digit(text[1]) || text[1] == '_');
}

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Why text that looks like a number to some YAML readers is none here, ending in `cure`; empty for other
/// text.
std::string odd_number(std::string_view text, const std::string& cure) {
  const std::string word = lower(text);
  const std::string shown = clip(text);
  if (is_one_of(word, {"true", "false", "yes", "no", "on", "off"}))
    return shown + " is a boolean, not a number" + cure;
  if (is_one_of(word, {".inf", "-.inf", "+.inf", "inf", "-inf", "infinity", ".nan", "nan"})) {
    return shown + " is not a finite number" + cure;
  }
  const bool based = word.starts_with("0x") || word.starts_with("0o") || word.starts_with("0b");
  if (based && word.size() > 2) return shown + " is not a decimal number" + cure;
  if (has_leading_zero(text)) {
    const std::string_view plain = text.substr(std::min(text.find_first_not_of("+-0_"), text.size()));
    return shown + " has a leading zero, which some YAML readers take for octal; write " +
           (plain.empty() || !is_digit(plain[0]) ? "0" : clip(plain));
  }
  return "";
}

/// Whether text is digits with ':' between them, which YAML 1.1 takes for a number to base 60.
bool is_base_60(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == ':' || c == '.'; });
}

double to_double(const Decimal& number) {
  const std::string text = number.digits + "e" + std::to_string(number.exponent);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  // Out of range is too small or too large; the sign of the exponent tells which.
  if (result.ec == std::errc::result_out_of_range) {
    value = number.exponent < 0 ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return number.negative ? -value : value;
}

/// Exponent of ten of a count's suffix, or nothing for an unknown one.
std::optional<std::int64_t> suffix_exponent(std::string_view suffix) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> suffixes = {
      {{"", 0}, {"k", 3}, {"K", 3}, {"M", 6}, {"B", 9}, {"T", 12}}};
  const auto* found =
      std::find_if(suffixes.begin(), suffixes.end(), [&](const auto& s) { return s.first == suffix; });
  if (found == suffixes.end()) return std::nullopt;
  return found->second;
}

constexpr std::string_view kCountForms = "write a count such as 1024, 1_024, 2k, 40M, 7B or 1e12";

Parsed<std::int64_t> exact_count(Decimal number, std::string_view text) {
  while (!number.digits.empty() && number.digits.back() == '0') {
    number.digits.pop_back();
    ++number.exponent;
  }
  if (number.digits.empty()) return Parsed<std::int64_t>::of(0);
  if (number.exponent < 0) {
    return Parsed<std::int64_t>::failed(clip(text) + " is not a whole number; " + std::string(kCountForms));
  }
  std::int64_t value = 0;
  bool overflow = false;
  for (const char digit : number.digits) {
    overflow = overflow || __builtin_mul_overflow(value, 10, &value) ||
               __builtin_add_overflow(value, digit - '0', &value);
  }
  for (std::int64_t i = 0; i < number.exponent && !overflow; ++i)
    overflow = __builtin_mul_overflow(value, 10, &value);
  if (overflow) return Parsed<std::int64_t>::failed(clip(text) + " is too large to count");
  return Parsed<std::int64_t>::of(number.negative ? -value : value);
}

struct Unit {
  std::string name;
  Dimension dimension;
  double factor;
};

/// How a dimension is spoken of in messages.
struct DimensionWords {
  Dimension dimension;
  std::string_view name;
  std::string_view number;
  std::string_view unit;
  std::string_view legal;
};

constexpr std::array<DimensionWords, 7> kDimensions = {{
    {Dimension::kSize, "a size", "80", "GiB",
     "GB, MB, kB, B, TB (powers of 1000), GiB, MiB, KiB, TiB (powers of 1024)"},
    {Dimension::kRate, "a rate", "25", "GB/s",
     "GB/s, MB/s, kB/s, TB/s, GiB/s, MiB/s (bytes), Gb/s, Mb/s, Tb/s (bits; 8 Gb/s = 1 GB/s)"},
    {Dimension::kTime, "a time", "1.5", "us", "s, ms, us, ns"},
    {Dimension::kCompute, "a compute rate", "312", "TFLOP/s", "TFLOP/s, PFLOP/s, GFLOP/s, MFLOP/s"},
    {Dimension::kPower, "a power", "700", "W", "W, kW, MW"},
    {Dimension::kDuration, "a duration", "30", "min", "ms, s, min, h, d (or day, days)"},
    {Dimension::kCarbon, "a carbon intensity", "400", "g/kWh", "g/kWh, kg/kWh, kg/MWh"},
}};

const DimensionWords& words_of(Dimension dimension) {
  return *std::find_if(kDimensions.begin(), kDimensions.end(),
                       [&](const DimensionWords& w) { return w.dimension == dimension; });
}

std::vector<Unit> make_units() {
  std::vector<Unit> units = {{"s", Dimension::kTime, 1},           {"ms", Dimension::kTime, 1e-3},
                             {"us", Dimension::kTime, 1e-6},       {"µs", Dimension::kTime, 1e-6},
                             {"μs", Dimension::kTime, 1e-6},       {"ns", Dimension::kTime, 1e-9},
                             {"W", Dimension::kPower, 1},          {"kW", Dimension::kPower, kKilo},
                             {"MW", Dimension::kPower, kMega},     {"s", Dimension::kDuration, 1},
                             {"min", Dimension::kDuration, 60},    {"h", Dimension::kDuration, 3600},
                             {"ms", Dimension::kDuration, 1e-3},   {"d", Dimension::kDuration, 86400},
                             {"day", Dimension::kDuration, 86400}, {"days", Dimension::kDuration, 86400},
                             {"g/kWh", Dimension::kCarbon, 1},     {"kg/kWh", Dimension::kCarbon, kKilo},
                             {"kg/MWh", Dimension::kCarbon, 1}};
  const std::vector<std::pair<std::string, double>> decimal = {{"", 1},      {"k", kKilo}, {"M", kMega},
                                                               {"G", kGiga}, {"T", kTera}, {"P", 1e15}};
  const std::vector<std::pair<std::string, double>> binary = {
      {"Ki", kKibi}, {"Mi", kMebi}, {"Gi", kGibi}, {"Ti", kGibi * kKibi}};
  const auto add_bytes = [&](const std::string& prefix, double factor) {
    units.push_back({prefix + "B", Dimension::kSize, factor});
    units.push_back({prefix + "B/s", Dimension::kRate, factor});
    units.push_back({prefix + "Bps", Dimension::kRate, factor});
  };
  for (const auto& [prefix, factor] : decimal) {
    add_bytes(prefix, factor);
    for (const char* bit : {"b/s", "bps", "bit/s"})
      units.push_back({prefix + bit, Dimension::kRate, factor / 8.0});
    for (const char* flop : {"FLOP/s", "FLOPS"})
      units.push_back({prefix + flop, Dimension::kCompute, factor});
  }
  for (const auto& [prefix, factor] : binary) add_bytes(prefix, factor);
  return units;
}

const std::vector<Unit>& units() {
  static const std::vector<Unit> all_units = make_units();
  return all_units;
}

/// The legal units that an unknown one may stand for: those that differ in case only, else the closest.
std::string likely_units(std::string_view unit, Dimension dimension) {
  std::vector<std::string> same_but_case;
  std::vector<std::string> legal;
  for (const Unit& known : units()) {
    if (known.dimension != dimension) continue;
    legal.push_back(known.name);
    if (lower(known.name) == lower(unit)) same_but_case.push_back(known.name);
  }
  if (!same_but_case.empty()) return join_alternatives(same_but_case);
  return closest_match(unit, legal);
}

Parsed<double> wrong_unit(std::string_view text, std::string_view unit, Dimension dimension) {
  const DimensionWords& words = words_of(dimension);
  const std::string legal = "; units of " + std::string(words.name) + ": " + std::string(words.legal);
  const auto known =
      std::find_if(units().begin(), units().end(), [&](const Unit& u) { return u.name == unit; });
  if (known != units().end()) {
    return Parsed<double>::failed(clip(text) + " is " + dimension_name(known->dimension) + ", but " +
                                  std::string(words.name) + " is needed" + legal);
  }
  const std::string likely = likely_units(unit, dimension);
  const std::string hint = likely.empty() ? "" : "; did you mean " + likely + "?";
  return Parsed<double>::failed(clip(text) + " has the unknown unit '" + clip(unit) + "'" + hint + legal);
}

}  // namespace

std::string dimension_name(Dimension dimension) {
  return std::string(words_of(dimension).name);
}

std::string_view base_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::kSize:
      return "B";
    case Dimension::kRate:
      return "B/s";
    case Dimension::kTime:
      return "s";
    case Dimension::kCompute:
      return "FLOP/s";
    case Dimension::kPower:
      return "W";
    case Dimension::kDuration:
      return "s";
    case Dimension::kCarbon:
      return "g/kWh";
  }
  return "";
}

std::string dimension_example(Dimension dimension) {
  const DimensionWords& words = words_of(dimension);
  return std::string(words.number) + " " + std::string(words.unit);
}

Parsed<std::int64_t> parse_count(std::string_view text) {
  using Result = Parsed<std::int64_t>;
  const std::string forms = "; " + std::string(kCountForms);
  if (std::string odd = odd_number(text, forms); !odd.empty()) return Result::failed(std::move(odd));
  if (is_base_60(text)) return Result::failed(clip(text) + " looks like a number to base 60" + forms);
  std::optional<Decimal> number = scan_decimal(text);
  if (!number) return Result::failed(clip(text) + " is not a count" + forms);
  const std::optional<std::int64_t> exponent = suffix_exponent(number->rest);
  if (!exponent) {
    return Result::failed(clip(text) + " is not a count: '" + clip(number->rest) +
                          "' is no suffix of a count" + forms);
  }
  number->exponent += *exponent;
  return exact_count(std::move(*number), text);
}

std::string format_number(double number) {
  std::ostringstream stream;
  stream << number;
  return stream.str();
}

Parsed<double> parse_number(std::string_view text) {
  using Result = Parsed<double>;
  const std::string form = "; write a plain number such as 0.75";
  if (std::string odd = odd_number(text, form); !odd.empty()) return Result::failed(std::move(odd));
  const std::optional<Decimal> number = scan_decimal(text);
  if (!number) return Result::failed(clip(text) + " is not a number" + form);
  if (number->rest == "%") {
    return Result::failed(clip(text) + " is a percentage; write the fraction, such as 0.75 for 75%");
  }
  if (!number->rest.empty()) {
    return Result::failed(clip(text) + " is not a plain number: '" + clip(without_blanks(number->rest)) +
                          "' is not expected" + form);
  }
  return Result::of(to_double(*number));
}

Parsed<double> parse_quantity(std::string_view text, Dimension dimension) {
  using Result = Parsed<double>;
  const DimensionWords& words = words_of(dimension);
  const std::string legal = "; units of " + std::string(words.name) + ": " + std::string(words.legal);
  const std::string cure = "; write " + std::string(words.name) + " such as " + dimension_example(dimension);
  if (std::string odd = odd_number(text, cure); !odd.empty()) return Result::failed(std::move(odd));
  const std::optional<Decimal> number = scan_decimal(text);
  if (!number) return Result::failed(clip(text) + " is not " + std::string(words.name) + cure);
  const std::string_view unit = without_blanks(number->rest);
  if (unit.empty()) {
    return Result::failed(clip(text) + " has no unit; write for example " + clip(text) + " " +
                          std::string(words.unit) + legal);
  }
  const auto known = std::find_if(units().begin(), units().end(),
                                  [&](const Unit& u) { return u.name == unit && u.dimension == dimension; });
  if (known == units().end()) return wrong_unit(text, unit, dimension);
  return Result::of(to_double(*number) * known->factor);
}

std::optional<Amount> split_amount(std::string_view text) {
  const std::optional<Decimal> number = scan_decimal(text);
  if (!number) return std::nullopt;
  return Amount{to_double(*number), std::string(without_blanks(number->rest))};
}

Parsed<bool> parse_flag(std::string_view text) {
  if (is_one_of(std::string(text), {"true", "True", "TRUE"})) return Parsed<bool>::of(true);
  if (is_one_of(std::string(text), {"false", "False", "FALSE"})) return Parsed<bool>::of(false);
  return Parsed<bool>::failed(clip(text) + " is not a boolean; write true or false");
}

}  // namespace trainsim::config
