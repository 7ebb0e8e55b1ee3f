// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/html_report.hpp"

#include <utility>

#include "sim/cli/command_text.hpp"
#include "sim/cli/kernel_gains.hpp"
#include "sim/cli/plan_changes.hpp"
#include "sim/report/page/page.hpp"

namespace trainsim::cli {

std::string html_report(const Subject& subject, const config::Experiment& experiment,
                        const report::Summary& summary, const Recording& recording,
                        const engine::Progress& progress) {
  report::WhatIf what_if = plan_changes(subject, experiment, progress);
  what_if.kernels = kernel_gains(recording.job, summary, progress);
  return report::to_html({experiment, summary, recording.job, recording.timeline, std::move(what_if),
                          CommandText("run").subject(subject).text(), TRAINSIM_VERSION});
}

}  // namespace trainsim::cli
