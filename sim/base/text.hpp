// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace trainsim {

/// A text without the blanks (spaces, tabs, ends of lines) at both of its ends; a view of the same bytes.
std::string_view trimmed(std::string_view text);

/// A text with small letters for the capital ones of ASCII.
std::string lower(std::string_view text);

}  // namespace trainsim
