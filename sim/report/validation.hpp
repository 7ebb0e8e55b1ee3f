// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/validation/evaluation.hpp"

namespace trainsim::report {

/// Tables for people: errors by family, worst rows, plan groups, what was skipped and why.
std::string to_text(const validation::Evaluation& evaluation);
/// The same, with every row, as JSON that ends in a newline.
std::string to_json(const validation::Evaluation& evaluation);
/// One line per comparison.
std::string to_csv(const validation::Evaluation& evaluation);
/// A picture: measured against simulated step times on logarithmic axes, with the identity line (SVG).
std::string to_svg(const validation::Evaluation& evaluation);
/// The tables as Markdown, for docs/accuracy.md.
std::string to_markdown(const validation::Evaluation& evaluation);

}  // namespace trainsim::report
