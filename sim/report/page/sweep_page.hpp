// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/sweep/row.hpp"

namespace trainsim::report {

/// What the page of a sweep is made from. Rows may be those of files.
struct SweepPage {
  const std::vector<sweep::Row>& rows;
  /// The command line that makes the same page.
  std::string command;
  /// Of the program.
  std::string version;
};

/// One HTML file with curves, map, Pareto front and table of the points (docs/report.md).
std::string to_html(const SweepPage& page);

}  // namespace trainsim::report
