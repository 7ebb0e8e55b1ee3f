// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/report/summary.hpp"

namespace trainsim::report {

/// Sentences that say why the main numbers are what they are and what would change them.
std::vector<std::string> explain(const Summary& summary);

/// Sentences on what would make the run shorter, or cheaper.
std::vector<std::string> training_notes(const training::TrainingRun& run);

}  // namespace trainsim::report
