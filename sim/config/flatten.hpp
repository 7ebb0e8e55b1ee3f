// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/config/value.hpp"

namespace trainsim::config {

/// All values below a mapping, as "plan.tensor_parallel" -> "8", in its order; lists in flow style, "[4, 4]".
/// Texts for people (name, description, source) are left out.
std::vector<std::pair<std::string, std::string>> flatten(const Value& root);

}  // namespace trainsim::config
