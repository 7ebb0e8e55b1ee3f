// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace trainsim::config {

/// Bytes of the code point that `text` starts with; 0 when it starts with no valid UTF-8 (or is empty).
std::size_t code_point_bytes(std::string_view text);

/// Code points in valid UTF-8; a stray byte counts as one.
std::size_t count_code_points(std::string_view text);

/// The code points [first, first + count) of `text`, fewer where it ends.
std::string_view code_points(std::string_view text, std::size_t first, std::size_t count);

/// /// `text` fit for use inside a message: on one line, printable, and cut with "…" behind `most` code
/// points.
std::string clip(std::string_view text, std::size_t most = 48);

}  // namespace trainsim::config
