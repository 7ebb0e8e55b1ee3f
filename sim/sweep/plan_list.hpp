// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "sim/sweep/axis.hpp"

namespace trainsim::sweep {

/// Reads a list of plans, such as a planner writes: a YAML list of mappings (JSON is YAML too), or, when the
/// file's name ends in .csv, a table whose header names keys; an empty cell leaves its key as it is. Keys are
/// dotted paths or, in YAML, nested mappings of sections; a key that is no section of a configuration is one
/// of `plan`. Throws InputError with every problem found.
Axis read_plans(const std::filesystem::path& file);

}  // namespace trainsim::sweep
