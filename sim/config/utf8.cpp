// SPDX-License-Identifier: Apache-2.0
#include "sim/config/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace trainsim::config {

namespace {

/// A form of UTF-8: which first bytes announce it, and the smallest code point that may use it.
struct Form {
  unsigned mask;
  unsigned lead;
  std::size_t bytes;
  std::uint32_t least;
};

constexpr Form kForms[] = {
    {0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};

bool is_code_point(std::uint32_t value) {
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value <= 0x10FFFF && !surrogate;
}

std::size_t step(std::string_view text) {
  return std::max<std::size_t>(1, code_point_bytes(text));
}

}  // namespace

std::size_t code_point_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  const Form* form = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const Form& f) { return (first & f.mask) == f.lead; });
  if (form == std::end(kForms) || text.size() < form->bytes) return 0;
  std::uint32_t value = first & ~form->mask;
  for (std::size_t i = 1; i < form->bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0u) != 0x80u) return 0;
    value = (value << 6) | (next & 0x3Fu);
  }
  return value >= form->least && is_code_point(value) ? form->bytes : 0;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); text.remove_prefix(step(text))) ++count;
  return count;
}

std::string_view code_points(std::string_view text, std::size_t first, std::size_t count) {
  for (; first > 0 && !text.empty(); --first) text.remove_prefix(step(text));
  std::string_view rest = text;
  for (; count > 0 && !rest.empty(); --count) rest.remove_prefix(step(rest));
  return text.substr(0, text.size() - rest.size());
}

std::string clip(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return shown + "…";
    const std::size_t bytes = code_point_bytes(text);
    // Bytes that are no text, and the control characters that escapes such as "\e" make, are not for a
    // terminal.
    const bool printable = bytes > 1 || (bytes == 1 && text[0] >= ' ' && text[0] != '\x7F');
    shown += printable ? text.substr(0, bytes) : bytes == 0 ? "?" : " ";
    text.remove_prefix(step(text));
  }
  return shown;
}

}  // namespace trainsim::config
