// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "sim/report/format.hpp"

namespace trainsim::report {

/// Where values begin in blocks of labels and values.
inline constexpr std::size_t kLabelWidth = 22;
/// Lines are wrapped to this.
inline constexpr std::size_t kTextWidth = 110;

/// A label and its value, which is wrapped.
inline std::string text_row(const std::string& label, const std::string& value) {
  const std::size_t indent = kLabelWidth + 2;
  return "  " + pad_right(label, kLabelWidth) + wrap(value, kTextWidth - indent, indent) + "\n";
}

}  // namespace trainsim::report
