// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace trainsim::report {

/// The page without its title and numbers, for which it has the marks @TITLE@ and @DATA@. Put together at
/// build time from web/ and D3 (cmake/embed_page.cmake).
extern const std::string_view kPageTemplate;

}  // namespace trainsim::report
