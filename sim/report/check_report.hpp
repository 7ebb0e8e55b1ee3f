// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"

namespace trainsim::report {

/// What `trainsim check` prints about a legal configuration.
struct CheckReport {
  std::string name;
  /// Derived values in order of presentation, such as "data_parallel" -> "16".
  std::vector<std::pair<std::string, std::string>> derived;
  /// Values the configuration left open, such as "plan.precision" -> "bf16".
  std::vector<std::pair<std::string, std::string>> defaults;
  std::vector<std::string> warnings;
};

std::string to_text(const CheckReport& report);
std::string to_json(const CheckReport& report);

/// A preset for `trainsim list`, as name and note.
using PresetList = std::vector<std::pair<std::string, std::string>>;
std::string presets_to_text(const PresetList& presets);
std::string presets_to_json(const PresetList& presets);

}  // namespace trainsim::report
