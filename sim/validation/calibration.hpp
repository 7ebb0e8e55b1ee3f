// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/validation/statistics.hpp"

namespace trainsim::validation {

/// A constant to fit: where it may lie, and what it is called in a preset.
struct Parameter {
  std::string name;
  double least = 0;
  double most = 1;
  /// What the search starts from.
  double start = 0;
  /// Unit behind the value in a file, and how many of it are one of the base unit ("us", 1e6).
  std::string unit;
  double per_base = 1;
  /// Relative change of the time of a typical measurement below which the data can't determine the constant.
  double least_influence = 0.005;
};

/// Measured and simulated times for given values of the parameters, in their order.
using Simulation = std::function<std::vector<Pair>(const std::vector<double>& values)>;

/// The outcome for one parameter.
struct Fit {
  Parameter parameter;
  double value = 0;
  /// Between these the objective stays within a tenth of its best, or half a point, whichever is more.
  double low = 0;
  double high = 0;
  /// Why the data can't determine it; empty when they can. The value is the start then.
  std::string refused;
};

/// A calibration: its parameters, and the errors before and after.
struct Calibration {
  std::vector<Fit> fits;
  ErrorStatistics before;
  ErrorStatistics after;
};

/// Fits parameters so that the mean absolute logarithm of simulated over measured times is least (which
/// weighs a factor of two too slow as much as one too fast, and large errors less than squares do), by
/// golden-section search along one parameter after the other until none moves by more than a thousandth of
/// its range. Parameters that hardly change any time are refused. REQUIRES: at least one pair, and positive
/// times.
Calibration calibrate(const std::vector<Parameter>& parameters, const Simulation& simulate);

}  // namespace trainsim::validation
