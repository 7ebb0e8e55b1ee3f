// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/difference.hpp"

namespace trainsim::report {

/// How sure it is how a run differs from the first, with constants drawn from their ranges, a constant of
/// both runs alike.
struct DifferenceInterval {
  std::size_t samples = 0;
  std::uint64_t seed = 0;
  /// Between these lie 90 % of the shares by which time changes (Difference::share()).
  double low = 0;
  double high = 0;
  /// Of the draws, those in which time changes the same way as in the result.
  std::size_t same_way = 0;
};

/// The interval of a change by `share` from the relative step times of both runs, draw by draw. REQUIRES: as
/// many of both, at least one.
DifferenceInterval difference_interval(double share, const std::vector<double>& first,
                                       const std::vector<double>& second, std::uint64_t seed);

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
  /// Against the first run, if it was asked for.
  std::optional<DifferenceInterval> interval = std::nullopt;
};

/// Results side by side; all others are compared with the first.
struct Comparison {
  std::vector<ComparedRun> runs;
};

/// What runs are called: "A" to "Z", then "A2", …
std::string run_letter(std::size_t index);

/// How a run differs from the first, in words, with its interval if there is one.
std::vector<std::string> difference_sentences(const Difference& difference, const ComparedRun& run);

/// A value of the input that is not the same in all runs; by run, empty where a run does not have it.
struct InputDifference {
  std::string key;
  std::vector<std::string> values;
};
/// All of them: plan first, then model, cluster and the rest.
std::vector<InputDifference> input_differences(const std::vector<ComparedRun>& runs);

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
