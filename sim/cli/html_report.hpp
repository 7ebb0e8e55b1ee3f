// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/cli/simulate.hpp"
#include "sim/cli/variant.hpp"
#include "sim/engine/executor.hpp"

namespace trainsim::cli {

/// The page of a run as one HTML file (docs/report.md). Simulates changes of the plan and faster kernels for
/// it.
std::string html_report(const Subject& subject, const config::Experiment& experiment,
                        const report::Summary& summary, const Recording& recording,
                        const engine::Progress& progress);

}  // namespace trainsim::cli
