// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/report/difference.hpp"

namespace trainsim::report {

/// A configuration that is compared, and its result.
struct ComparedRun {
  /// As it was asked for, "gpt175b@plan.recompute=full".
  std::string label;
  std::string description;
  /// Names of model, cluster and GPU.
  std::string model;
  std::string cluster;
  /// `--set` overrides that it has.
  std::vector<std::string> overrides;
  /// Every value of the resolved input with its dotted path.
  std::vector<std::pair<std::string, std::string>> values;
  /// The result, as `to_json` writes it.
  std::string json;
  /// Its figures, called "A", "B", … in the order of the list.
  Figures figures;
};

/// Results side by side; all others are compared with the first.
struct Comparison {
  std::vector<ComparedRun> runs;
};

/// What runs are called: "A" to "Z", then "A2", …
std::string run_letter(std::size_t index);

/// A value of the input that is not the same in all runs; by run, empty where a run does not have it.
struct InputDifference {
  std::string key;
  std::vector<std::string> values;
};
/// All of them: plan first, then model, cluster and the rest.
std::vector<InputDifference> input_differences(const std::vector<ComparedRun>& runs);

/// Tables of where time and memory moved, both in full, and the sentences.
std::string waterfall_text(const Difference& difference);

/// Results side by side, inputs where they differ, waterfalls, sentences.
std::string to_text(const Comparison& comparison);
/// What changes from the first run to each other one, below the text of the first; and as another key,
/// `what_if`, of its JSON.
std::string what_if_text(const Comparison& comparison);
std::string with_what_if(const std::string& json, const Comparison& comparison);
/// The same with each run's full result (docs/compare.md).
std::string to_json(const Comparison& comparison);
/// One row per run: its figures, and what they are more than those of the first.
std::string to_csv(const Comparison& comparison);

}  // namespace trainsim::report
