// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/config/report.hpp"
#include "sim/config/value.hpp"

namespace trainsim::config {

/// How well a constant is known.
enum class Grade { kDataSheet, kMeasured, kFitted, kGuess };
/// As in files: "data sheet", "measured", "fitted", "guess".
std::string to_string(Grade grade);

/// A constant of a preset with what is known of it.
struct Constant {
  /// Dotted path in the configuration, such as "cluster.gpu.matmul_efficiency".
  std::string path;
  Grade grade = Grade::kGuess;
  /// The value as it is written.
  std::string value;
  /// Bounds between which it probably lies, in the unit that stands behind both; equal to the value, with an
  /// empty unit, for a constant without a range.
  double low = 0;
  double nominal = 0;
  double high = 0;
  std::string unit;

  /// Whether there is a range to vary it in.
  bool varies() const { return low < high; }
  /// A number in the constant's unit, as `--set` takes it.
  std::string text(double number) const;
};

/// Replaces every `{value: …, grade: …, range: [low, high]}` below `root` by its value, and returns what it
/// said. What is wrong with one is reported, with paths below `path`.
std::vector<Constant> take_constants(Value& root, const std::string& path, Report& report);

}  // namespace trainsim::config
