// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/base/units.hpp"

namespace trainsim::training {

/// "34.2 days", "3.1 h", "12 min" or "31 s": a time of everyday life to three digits.
std::string duration_text(Seconds seconds);

}  // namespace trainsim::training
