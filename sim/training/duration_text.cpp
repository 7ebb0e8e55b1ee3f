// SPDX-License-Identifier: Apache-2.0
#include "sim/training/duration_text.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace trainsim::training {

namespace {

struct Unit {
  const char* name;
  Seconds seconds;
};

constexpr std::array<Unit, 3> kUnits = {{{"days", kSecondsPerDay}, {"h", kSecondsPerHour}, {"min", 60}}};

/// Three digits, or all of those before the point.
std::string three_digits(double number) {
  std::array<char, 64> text{};
  const double size = std::abs(number);
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f", decimals, number);
  return text.data();
}

}  // namespace

std::string duration_text(Seconds seconds) {
  for (const Unit& unit : kUnits) {
    // Up to twice a unit the next smaller one tells more.
    if (std::abs(seconds) >= 2 * unit.seconds) return three_digits(seconds / unit.seconds) + " " + unit.name;
  }
  return three_digits(seconds) + " s";
}

}  // namespace trainsim::training
