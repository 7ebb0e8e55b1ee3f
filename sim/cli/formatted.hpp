// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/cli/command_options.hpp"

namespace trainsim::cli {

/// A result of `report` in a format that its command declares: text, JSON or CSV.
template <class Result>
std::string formatted(const Result& result, Format format) {
  if (format == Format::kJson) return to_json(result);
  return format == Format::kCsv ? to_csv(result) : to_text(result);
}

}  // namespace trainsim::cli
