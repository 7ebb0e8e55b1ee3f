// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

namespace trainsim {

/// The value below which a share in [0, 1] of the values lies, between two of them in proportion. REQUIRES:
/// there are values.
double quantile(std::vector<double> values, double share);

/// Share of the values on either side of an interval that holds 90 % of them.
inline constexpr double kIntervalTail = 0.05;

}  // namespace trainsim
