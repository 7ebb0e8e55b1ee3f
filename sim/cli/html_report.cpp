// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/html_report.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/kernel_gains.hpp"
#include "sim/cli/plan_changes.hpp"
#include "sim/engine/link_curves.hpp"
#include "sim/report/network.hpp"
#include "sim/report/page/page.hpp"

namespace trainsim::cli {

namespace {

/// Parts of the step for which the use of links is shown.
constexpr std::size_t kCurveParts = 240;

std::vector<program::LinkCurve> curves_of_busiest_links(const report::Summary& summary,
                                                        const Recording& recording) {
  std::vector<std::string> names;
  for (const program::LinkTraffic* link : report::busiest_links(summary)) names.push_back(link->name);
  return engine::link_curves(recording.job, recording.timeline, names, kCurveParts);
}

}  // namespace

std::string html_report(const Subject& subject, const config::Experiment& experiment,
                        const report::Summary& summary, const Recording& recording, ReportRequest request,
                        const engine::Progress& progress) {
  report::WhatIf what_if = plan_changes(subject, experiment, progress);
  what_if.kernels = kernel_gains(recording.job, summary, progress);
  return report::to_html({experiment, summary, recording.job, recording.timeline, std::move(what_if),
                          curves_of_busiest_links(summary, recording), std::move(request.asked),
                          std::move(request.command), TRAINSIM_VERSION});
}

}  // namespace trainsim::cli
