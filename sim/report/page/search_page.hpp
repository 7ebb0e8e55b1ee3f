// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/report/search.hpp"

namespace trainsim::report {

/// What the page of a search is made from.
struct SearchPage {
  const SearchReport& search;
  /// The command line that makes the same page.
  std::string command;
  /// Of the program.
  std::string version;
};

/// One HTML file with the best plans, what they trade for each other, and what became of all others
/// (docs/report.md).
std::string to_html(const SearchPage& page);

}  // namespace trainsim::report
