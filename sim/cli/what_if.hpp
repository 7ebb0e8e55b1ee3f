// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/cli/variations.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// The configurations that `--what-if` asks for, one for each of `questions`; several changes in one are
/// separated by commas. Throws InputError for changes that can't be understood or are illegal.
std::vector<Variation> load_what_ifs(const Subject& subject, const config::Experiment& base,
                                     const std::vector<std::string>& questions);

/// Simulates each part of the hardware that `base` uses, and each operation that it has, 10 % better: rates
/// and sizes times 1.1, latencies divided by it. Not to be called after SimGrid has run in this process.
report::Sensitivity measure_sensitivity(const Subject& subject, const config::Experiment& base,
                                        const VariationOptions& options);

}  // namespace trainsim::cli
