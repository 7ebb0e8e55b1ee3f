// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/report/json_dump.hpp"
#include "sim/report/page/template.hpp"

namespace trainsim::report {

/// A page may be this large, in bytes.
inline constexpr std::size_t kLargestPage = 2'000'000;

/// What the frame of every page shows.
struct PageFrame {
  /// What the page is about: "Sweep of a configuration".
  std::string kind;
  /// Its heading.
  std::string name;
  std::string description;
  /// The command line that makes the same page.
  std::string command;
  /// Of the program.
  std::string version;
};

/// A page as one HTML file. `data` is what its scripts show, beside what the frame does.
std::string framed(const PageTemplate& page, const PageFrame& frame, Json data);

/// JSON as it may stand inside a script element: nothing in it can end the element or begin a comment.
std::string script_safe(const Json& json);
/// Text as it may stand in HTML.
std::string html_safe(const std::string& text);

}  // namespace trainsim::report
