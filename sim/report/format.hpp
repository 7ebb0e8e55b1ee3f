// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/base/units.hpp"

namespace trainsim::report {

/// "12.345": `digits` significant digits, without exponent for ordinary magnitudes.
std::string number(double value, int digits = 4);
/// "0.078": with this many decimals.
std::string fixed(double value, int decimals);
/// "27.3 %" from 0.273; small shares keep two significant digits.
std::string percent(double share);
/// "18.13 s", "4.200 ms" or "35.00 us".
std::string duration(Seconds seconds);
/// "0.90 s": with the unit and the decimals that `scale` has as a duration, so that parts of one whole stand
/// below each other; and "+0.90 s", a change.
std::string duration_like(Seconds seconds, Seconds scale);
std::string signed_duration(Seconds seconds, Seconds scale);
/// "+7.7 %": a change.
std::string signed_percent(double share);
/// "61.3 GiB" (2^30 bytes); below a tenth of it in MiB.
std::string gib(Bytes bytes);
/// "+1.20 GiB": a change of memory.
std::string signed_gib(Bytes bytes);
/// "64.00 MiB": a size in the largest binary unit that it fills.
std::string bytes_text(double bytes);
/// "174.6 B", "1.200 T": a count with its decimal suffix.
std::string count(double value);
/// "optimizer_state" as "optimizer state".
std::string words(std::string name);
/// Breaks text at spaces into lines of at most `width` characters; lines after the first are indented by
/// `indent` more.
std::string wrap(const std::string& text, std::size_t width, std::size_t indent);
/// Sentences as a paragraph of a text output: indented, and as wide as its tables at most.
std::string paragraph(const std::string& text);
/// Pads to a width, counting UTF-8 characters, left- or right-aligned.
std::string pad_left(const std::string& text, std::size_t width);
std::string pad_right(const std::string& text, std::size_t width);

}  // namespace trainsim::report
