// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace trainsim::validation {

namespace {

/// Golden-section steps along one parameter: they narrow its range to a 10,000th.
constexpr int kSearchSteps = 20;
constexpr int kMostRounds = 20;
/// Points of a first look along a parameter, because the objective may have several valleys.
constexpr int kLookPoints = 16;
/// Share of a parameter's range whose influence is probed.
constexpr double kProbe = 0.1;
/// Fewest measurements that a parameter must move.
constexpr std::size_t kFewestMoved = 3;

double objective(const std::vector<Pair>& pairs) {
  double sum = 0;
  for (const Pair& pair : pairs) sum += std::abs(std::log(pair.simulated / pair.measured));
  return sum / static_cast<double>(pairs.size());
}

/// The search for one set of parameters.
class Search {
 public:
  Search(const std::vector<Parameter>& parameters, const Simulation& simulate)
      : parameters_(parameters), simulate_(simulate) {
    for (const Parameter& parameter : parameters) values_.push_back(parameter.start);
  }

  Calibration run() {
    Calibration result;
    result.before = error_statistics(simulate_(values_));
    for (std::size_t i = 0; i < parameters_.size(); ++i) refusals_.push_back(refusal(i));
    for (int round = 0; round < kMostRounds && descend(); ++round) {
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) result.fits.push_back(fit(i));
    result.after = error_statistics(simulate_(values_));
    return result;
  }

 private:
  double at(std::size_t index, double value) const {
    std::vector<double> values = values_;
    values[index] = value;
    return objective(simulate_(values));
  }

  /// Why a parameter can't be determined; empty when it can.
  std::string refusal(std::size_t index) const {
    const Parameter& parameter = parameters_[index];
    const double step = kProbe * (parameter.most - parameter.least);
    std::vector<double> values = values_;
    values[index] = std::max(parameter.least, values_[index] - step);
    const std::vector<Pair> low = simulate_(values);
    values[index] = std::min(parameter.most, values_[index] + step);
    const std::vector<Pair> high = simulate_(values);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < low.size(); ++i) {
      const double change = std::abs(std::log(high[i].simulated / low[i].simulated));
      moved += change >= parameter.least_influence ? 1 : 0;
    }
    if (moved >= kFewestMoved) return "";
    return "only " + std::to_string(moved) + " of " + std::to_string(low.size()) +
           " measurements depend on it; at least " + std::to_string(kFewestMoved) + " must";
  }

  /// One round along all parameters; whether any moved.
  bool descend() {
    bool moved = false;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!refusals_[i].empty()) continue;
      const double best = minimum(i);
      moved = moved || std::abs(best - values_[i]) > 1e-3 * (parameters_[i].most - parameters_[i].least);
      values_[i] = best;
    }
    return moved;
  }

  double minimum(std::size_t index) const {
    const Parameter& parameter = parameters_[index];
    const double width = (parameter.most - parameter.least) / kLookPoints;
    double best = values_[index];
    double least = at(index, best);
    for (int i = 0; i <= kLookPoints; ++i) {
      const double value = parameter.least + i * width;
      const double here = at(index, value);
      // Also when `here` is not a number.
      if (!(here < least)) continue;
      least = here;
      best = value;
    }
    const double found = golden_section(index, std::max(parameter.least, best - width),
                                        std::min(parameter.most, best + width));
    return at(index, found) < least ? found : best;
  }

  double golden_section(std::size_t index, double low, double high) const {
    const double ratio = (std::sqrt(5.0) - 1.0) / 2.0;
    double left = high - ratio * (high - low);
    double right = low + ratio * (high - low);
    double at_left = at(index, left);
    double at_right = at(index, right);
    for (int step = 0; step < kSearchSteps; ++step) {
      if (at_left <= at_right) {
        high = std::exchange(right, left);
        at_right = at_left;
        left = high - ratio * (high - low);
        at_left = at(index, left);
      } else {
        low = std::exchange(left, right);
        at_left = at_right;
        right = low + ratio * (high - low);
        at_right = at(index, right);
      }
    }
    return (low + high) / 2.0;
  }

  Fit fit(std::size_t index) const {
    const Parameter& parameter = parameters_[index];
    if (!refusals_[index].empty()) {
      return {parameter, parameter.start, parameter.start, parameter.start, refusals_[index]};
    }
    const double best = at(index, values_[index]);
    const double limit = best + std::max(0.1 * best, 0.005);
    return {parameter, values_[index], edge(index, parameter.least, limit),
            edge(index, parameter.most, limit), ""};
  }

  /// How far a parameter may go towards `end` before the objective passes the limit.
  double edge(std::size_t index, double end, double limit) const {
    if (at(index, end) <= limit) return end;
    double inside = values_[index];
    double outside = end;
    for (int step = 0; step < kSearchSteps; ++step) {
      const double middle = (inside + outside) / 2.0;
      (at(index, middle) <= limit ? inside : outside) = middle;
    }
    return inside;
  }

  const std::vector<Parameter>& parameters_;
  const Simulation& simulate_;
  std::vector<double> values_;
  std::vector<std::string> refusals_;
};

}  // namespace

Calibration calibrate(const std::vector<Parameter>& parameters, const Simulation& simulate) {
  return Search(parameters, simulate).run();
}

}  // namespace trainsim::validation
