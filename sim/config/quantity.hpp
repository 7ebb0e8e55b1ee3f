// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainsim::config {

/// A value read from text, or why it could not be: then `error` is a clause that names the text and the cure.
template <class T>
struct Parsed {
  /// The value; nothing when there is an error.
  std::optional<T> value;
  /// Cause and cure; empty when there is a value.
  std::string error;

  /// A result without error.
  static Parsed of(T parsed) { return {std::move(parsed), ""}; }
  /// A result without value.
  static Parsed failed(std::string why) { return {std::nullopt, std::move(why)}; }
};

/// What a quantity measures.
enum class Dimension {
  kSize,
  kRate,
  /// Of hardware: up to seconds.
  kTime,
  kCompute,
  kPower,
  /// Of a whole run: from seconds to days.
  kDuration,
  /// CO2 per energy, in grams per kilowatt-hour.
  kCarbon,
};

/// "a size", "a rate", "a time", "a compute rate", "a power", "a duration" or "a carbon intensity".
std::string dimension_name(Dimension dimension);

/// The unit that values of a dimension are kept in: "B", "B/s", "s", "FLOP/s", "W" or "g/kWh".
std::string_view base_unit(Dimension dimension);

/// A quantity as somebody would write it, such as "80 GiB".
std::string dimension_example(Dimension dimension);

/// A whole number: 1024, 1_024, 1e12, 2k, 40M, 7B, 1.4T (decimal suffixes). Fractions, leading zeros,
/// hexadecimal, base 60, booleans and infinities are errors that say so.
Parsed<std::int64_t> parse_count(std::string_view text);

/// A plain number without unit, such as 0.75 or 1e-3.
Parsed<double> parse_number(std::string_view text);

/// A number as somebody would write it: 8, 0.75, 12.5.
std::string format_number(double number);

/// A number with a unit of the given dimension, in base units: bytes, bytes per second, seconds or operations
/// per second. Bits and bytes are kept apart: 200 Gb/s = 200 Gbps = 25 GB/s.
Parsed<double> parse_quantity(std::string_view text, Dimension dimension);

/// A number and what stands behind it, "33.4" and "us".
struct Amount {
  double number = 0;
  std::string unit;
};

/// Takes "33.4 us" apart; nothing when text does not begin with a number.
std::optional<Amount> split_amount(std::string_view text);

/// true or false. Words such as "yes" and numbers are errors.
Parsed<bool> parse_flag(std::string_view text);

}  // namespace trainsim::config
