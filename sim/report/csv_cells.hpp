// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace trainsim::report {

/// Shortest text that reads back as the same number.
std::string exact(double value);
/// A cell of a CSV file; quoted when it holds a separator (RFC 4180).
std::string cell(const std::string& text);

}  // namespace trainsim::report
