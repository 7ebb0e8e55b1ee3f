// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/config/experiment.hpp"

namespace trainsim::cli {

/// Throws InputError for an assertion about a part of the whole run that the configuration does not ask for,
/// with what to give; to be called before a long simulation. REQUIRES: report::check_assertion_early accepts
/// the assertions.
void check_run_assertions(const std::vector<std::string>& assertions, const config::Experiment& experiment);

}  // namespace trainsim::cli
