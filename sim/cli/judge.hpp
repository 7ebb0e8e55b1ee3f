// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// The exit code of a result: kAssertionFailed if one of the assertions ("bubble_ratio<=0.10") does not hold,
/// kDoesNotFit if the plan does not fit though it must, else kDone. Says why on standard error.
int judge(const report::Summary& summary, const std::vector<std::string>& assertions, bool require_fit);

}  // namespace trainsim::cli
