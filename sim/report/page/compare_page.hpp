// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/report/comparison.hpp"

namespace trainsim::report {

/// What the page of a comparison is made from.
struct ComparePage {
  const Comparison& comparison;
  /// The command line that makes the same page.
  std::string command;
  /// Of the program.
  std::string version;
};

/// One HTML file with results side by side and where time and memory moved (docs/report.md).
std::string to_html(const ComparePage& page);

}  // namespace trainsim::report
