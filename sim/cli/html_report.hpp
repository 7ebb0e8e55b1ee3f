// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/cli/simulate.hpp"
#include "sim/cli/variant.hpp"
#include "sim/engine/executor.hpp"
#include "sim/report/comparison.hpp"

namespace trainsim::cli {

/// What a page needs to know of the command line.
struct ReportRequest {
  /// The command line that makes the same page.
  std::string command;
  /// The run itself, then what was asked with --what-if; empty if nothing was.
  report::Comparison asked;
};

/// The page of a run as one HTML file (docs/report.md). Simulates changes of the plan and faster kernels for
/// it.
std::string html_report(const Subject& subject, const config::Experiment& experiment,
                        const report::Summary& summary, const Recording& recording, ReportRequest request,
                        const engine::Progress& progress);

}  // namespace trainsim::cli
