// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/cli/uncertainty.hpp"
#include "sim/cli/variations.hpp"
#include "sim/report/comparison.hpp"

namespace trainsim::cli {

/// A configuration of a comparison, taken apart: "gpt175b@plan.recompute=full,gpus=512" is gpt175b with two
/// changes.
struct CompareSpec {
  std::string config;
  /// As `config::overrides_for` takes them.
  std::vector<std::string> changes;
};

/// Takes "CONFIG", "CONFIG@CHANGES" or "@CHANGES" apart; the last stands for the first configuration, with
/// its changes and these. The name of a file that exists is no change, whatever is in it. Throws InputError
/// when there is no first one.
CompareSpec parse_compare_spec(const std::string& text, const CompareSpec* first);

/// Loads what is to be compared: `overrides` apply to all, before the changes of each. Throws InputError for
/// bad configurations, fewer than two of them, and bad changes.
std::vector<Variation> load_compared(const std::vector<std::string>& configs, const Overrides& overrides);

/// The compared configurations as those whose constants are drawn. REQUIRES: `variations` are those of
/// `configs`.
std::vector<SampledConfig> sampled_configs(const std::vector<std::string>& configs,
                                           const std::vector<Variation>& variations);

}  // namespace trainsim::cli
