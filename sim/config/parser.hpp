// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "sim/config/report.hpp"
#include "sim/config/source.hpp"
#include "sim/config/value.hpp"

namespace trainsim::config {

/// Parses one YAML document of any kind; an empty one is a null value. Returns nothing, with the reason in
/// `report`, when it is no YAML, has tags or keys that are no words, is nested deeper than 32 levels, has
/// more than a million values, or aliases that expand too far (more than 100 of them, or to more than 100,000
/// values). Duplicate keys are reported too, and the first of them is kept. Positions are those of `source`,
/// whose text is usually the one that is parsed.
std::optional<Value> parse(const std::shared_ptr<const Source>& source, const std::string& text,
                           Report& report);

/// The same for the text of a file, whose document must be a mapping.
std::optional<Value> parse_mapping(const std::shared_ptr<const Source>& source, Report& report);

}  // namespace trainsim::config
