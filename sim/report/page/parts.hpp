// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/report/json_dump.hpp"
#include "sim/report/page/page.hpp"

namespace trainsim::report {

/// A bar of the efficiency waterfall.
struct WaterfallBar {
  std::string name;
  /// A total stands on the ground; a cost is what separates two totals, and may be negative.
  bool is_total = false;
  Seconds seconds = 0;
  /// What it is, in a sentence.
  std::string text;
};

/// From the arithmetic at the GPU's peak over an ideal share of the work to the step time: each total is the
/// one before plus the costs in between. Mean over ranks.
std::vector<WaterfallBar> waterfall(const Summary& summary);

/// Something that costs time or memory, in plain words.
struct Finding {
  /// What it is, and how much: "Bubble", "14.0 %".
  std::string name;
  std::string amount;
  /// Of the step; only its size matters, for the order.
  double share = 0;
  std::string text;
  /// What would help, as far as it was tried; may be empty.
  std::string advice;
};

/// What to know first.
struct Diagnosis {
  std::string headline;
  /// What costs most first; memory last.
  std::vector<Finding> findings;
};

Diagnosis diagnose(const Summary& summary, const WhatIf& what_if);

/// Slots of the ranks as they ran, as columns of whole numbers, and what runs in them.
Json timeline_json(const Page& page);

/// What of a run's JSON result pages show beside that of other runs.
Json shown_results(const Json& result);

/// What each run but the first changes (docs/report.md, "What was asked").
Json what_ifs_json(const Comparison& comparison);

/// The same numbers as everywhere else, and those that only the page shows.
Json page_json(const Page& page);

}  // namespace trainsim::report
