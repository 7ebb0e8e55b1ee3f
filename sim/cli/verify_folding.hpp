// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/config/experiment.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// Simulates the experiment unfolded in a child process and compares it with the folded summary. Returns a sentence
/// for the result. Throws std::runtime_error when step times differ by more than 1e-9 or memory by a byte.
std::string verify_folding(const config::Experiment& experiment, const report::Summary& folded);

}  // namespace trainsim::cli
