// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace trainsim::report {

/// What all pages have, without its marks @TITLE@, @SECTIONS@, @DATA@ and @SCRIPT@. Put together at build
/// time from web/ and D3 (cmake/embed_page.cmake).
extern const std::string_view kPageFrame;

/// What a page has of its own.
struct PageTemplate {
  /// As definitions.html calls it: "run".
  std::string_view name;
  /// Its sections, in HTML, and the scripts that fill them.
  std::string_view sections;
  std::string_view script;
};

extern const PageTemplate kRunPage;
extern const PageTemplate kSweepPage;
extern const PageTemplate kComparePage;
extern const PageTemplate kSearchPage;

}  // namespace trainsim::report
