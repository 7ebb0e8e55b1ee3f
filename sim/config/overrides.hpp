// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/config/report.hpp"
#include "sim/config/value.hpp"

namespace trainsim::config {

/// Writes `--set` overrides ("key.path=value", the value in YAML's flow style) into a configuration, in
/// order. Missing mappings on the way are created; a name on the way ("model: gpt3-175b") becomes {extends:
/// gpt3-175b} and is changed. Whether keys and values are legal shows when the configuration is read;
/// malformed overrides are reported.
void apply_overrides(Value& config, const std::vector<std::string>& overrides, Report& report);

}  // namespace trainsim::config
