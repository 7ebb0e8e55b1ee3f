// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <vector>

#include "sim/config/experiment.hpp"
#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"
#include "sim/program/traffic.hpp"
#include "sim/report/comparison.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// Step times if one kernel were faster and all else stayed as it is, without contention between transfers.
struct KernelGain {
  /// As in Summary::kernels.
  std::string name;
  Seconds if_twice_as_fast = 0;
  Seconds if_free = 0;
};

/// A change of the plan and what it would do.
struct PlanChange {
  /// "96 → 192 micro-batches".
  std::string label;
  /// As for --set.
  std::vector<std::string> overrides;
  /// Whether a step has as many sequences as before; more of them are another training run.
  bool keeps_batch = true;
  /// Tokens per second over those of the plan as it is, both without contention between transfers.
  double relative_throughput = 1;
  Seconds step_time = 0;
  double bubble_ratio = 0;
  /// Mean over ranks, by program::Cause; adds up to step_time.
  std::array<Seconds, program::kCauses> breakdown{};
  Verdict verdict = Verdict::kFits;
  Bytes peak_memory = 0;
  Bytes headroom = 0;
};

/// What was tried beside the run.
struct WhatIf {
  /// Step time of the run itself without contention between transfers.
  Seconds step_time = 0;
  /// For the kernels that take most.
  std::vector<KernelGain> kernels;
  /// Best throughput first.
  std::vector<PlanChange> changes;
};

/// What the page of a run is made from.
struct Page {
  const config::Experiment& experiment;
  const Summary& summary;
  /// The job and how it ran; with spans, if slots are to be shown in parts.
  const program::Job& job;
  const program::Timeline& timeline;
  WhatIf what_if;
  /// Of busiest_links(), in equal parts of the step.
  std::vector<program::LinkCurve> link_curves;
  /// The run itself, then what was asked with --what-if; empty if nothing was.
  Comparison asked;
  /// The command line that makes the same page.
  std::string command;
  /// Of the program.
  std::string version;
};

/// One HTML file with everything in it: style, scripts and the numbers as JSON, `result` of which is the JSON
/// result (docs/report.md). It needs no network.
std::string to_html(const Page& page);

}  // namespace trainsim::report
