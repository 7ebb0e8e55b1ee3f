// SPDX-License-Identifier: Apache-2.0
#include "sim/report/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace trainsim::report {

namespace {

/// A number of a change: a plus before what is neither negative nor nothing.
std::string with_sign(const std::string& text) {
  const bool nothing = text.find_first_of("123456789") == std::string::npos;
  return (nothing || text.starts_with("-") ? "" : "+") + text;
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string number(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fixed(value, 0);
  // Rounding first, so that 9.9996 counts as 10.00.
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*e", digits - 1, value);
  const int magnitude =
      std::atoi(std::string(text.data()).substr(std::string(text.data()).find('e') + 1).c_str());
  return fixed(value, std::clamp(digits - 1 - magnitude, 0, 12));
}

std::string percent(double share) {
  // What rounding leaves of a difference is nothing.
  const double value = std::abs(share) < 1e-11 ? 0.0 : 100.0 * share;
  return (std::abs(value) < 0.95 && value != 0 ? number(value, 2) : fixed(value, 1)) + " %";
}

std::string duration(Seconds seconds) {
  const Seconds size = std::abs(seconds);
  if (size >= 1.0 || size == 0) return number(seconds) + " s";
  if (size >= 1e-3) return number(seconds * 1e3) + " ms";
  return number(seconds * 1e6) + " us";
}

std::string duration_like(Seconds seconds, Seconds scale) {
  const Seconds size = std::abs(scale);
  const double factor = size >= 1.0 ? 1.0 : size >= 1e-3 ? 1e3 : 1e6;
  const int magnitude = size > 0 ? static_cast<int>(std::floor(std::log10(size * factor))) : 0;
  const std::string text = fixed(seconds * factor, std::clamp(3 - magnitude, 0, 9));
  // What rounds to nothing has no sign.
  const bool nothing = text.find_first_of("123456789") == std::string::npos;
  return (nothing && text.starts_with("-") ? text.substr(1) : text) + (size >= 1.0    ? " s"
                                                                       : size >= 1e-3 ? " ms"
                                                                                      : " us");
}

std::string signed_duration(Seconds seconds, Seconds scale) {
  return with_sign(duration_like(seconds, scale));
}

std::string signed_percent(double share) {
  return with_sign(percent(std::abs(share) < 5e-6 ? 0.0 : share));
}

std::string gib(Bytes bytes) {
  const double value = static_cast<double>(bytes) / kGibi;
  if (std::abs(value) < 0.1) return number(static_cast<double>(bytes) / kMebi, 3) + " MiB";
  return (std::abs(value) < 10 ? fixed(value, 2) : fixed(value, 1)) + " GiB";
}

std::string signed_gib(Bytes bytes) {
  return with_sign(gib(bytes));
}

std::string bytes_text(double bytes) {
  if (bytes >= kGibi) return number(bytes / kGibi) + " GiB";
  if (bytes >= kMebi) return number(bytes / kMebi) + " MiB";
  if (bytes >= kKibi) return number(bytes / kKibi) + " KiB";
  return number(bytes) + " B";
}

std::string count(double value) {
  if (value >= kTera) return number(value / kTera) + " T";
  if (value >= kGiga) return number(value / kGiga) + " B";
  if (value >= kMega) return number(value / kMega) + " M";
  return fixed(value, 0);
}

std::string words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string wrap(const std::string& text, std::size_t width, std::size_t indent) {
  std::string result;
  std::string line;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    if (!line.empty() && characters(line) + 1 + characters(word) > width) {
      result += (result.empty() ? "" : std::string(indent, ' ')) + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + (result.empty() ? "" : std::string(indent, ' ')) + line;
}

std::string paragraph(const std::string& text) {
  constexpr std::size_t width = 108;
  return "  " + wrap(text, width, 2) + "\n";
}

std::string pad_left(const std::string& text, std::size_t width) {
  const std::size_t length = characters(text);
  return length >= width ? text : std::string(width - length, ' ') + text;
}

std::string pad_right(const std::string& text, std::size_t width) {
  const std::size_t length = characters(text);
  return length >= width ? text : text + std::string(width - length, ' ');
}

}  // namespace trainsim::report
