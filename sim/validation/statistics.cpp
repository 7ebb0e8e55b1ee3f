// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trainsim::validation {

namespace {

int sign(double difference) {
  return difference > 0 ? 1 : (difference < 0 ? -1 : 0);
}

/// Rank of each value, from 1; equal values share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) {
    const auto below =
        std::count_if(values.begin(), values.end(), [&](double other) { return other < value; });
    const auto equal = std::count(values.begin(), values.end(), value);
    result.push_back(static_cast<double>(below) + (static_cast<double>(equal) + 1.0) / 2.0);
  }
  return result;
}

double pearson(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double both = 0;
  double square_a = 0;
  double square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    square_a += (a[i] - mean_a) * (a[i] - mean_a);
    square_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return square_a > 0 && square_b > 0 ? both / std::sqrt(square_a * square_b) : 0.0;
}

}  // namespace

ErrorStatistics error_statistics(const std::vector<Pair>& pairs) {
  ErrorStatistics result;
  result.rows = pairs.size();
  std::vector<double> sizes;
  std::size_t positive = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double error = pairs[i].error();
    sizes.push_back(std::abs(error));
    result.bias += error;
    positive += error > 0 ? 1 : 0;
    if (std::abs(error) < std::abs(result.worst)) continue;
    result.worst = error;
    result.worst_index = i;
  }
  const auto n = static_cast<double>(pairs.size());
  result.mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / n;
  result.bias /= n;
  std::sort(sizes.begin(), sizes.end());
  const std::size_t middle = sizes.size() / 2;
  result.median = sizes.size() % 2 == 1 ? sizes[middle] : (sizes[middle - 1] + sizes[middle]) / 2.0;
  result.one_sign = positive == 0 || positive == pairs.size();
  return result;
}

double kendall_tau(const std::vector<Pair>& pairs) {
  double balance = 0;
  double differ_measured = 0;
  double differ_simulated = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int measured = sign(pairs[i].measured - pairs[j].measured);
      const int simulated = sign(pairs[i].simulated - pairs[j].simulated);
      balance += measured * simulated;
      differ_measured += std::abs(measured);
      differ_simulated += std::abs(simulated);
    }
  }
  const double scale = std::sqrt(differ_measured * differ_simulated);
  return scale > 0 ? balance / scale : 0.0;
}

double spearman_rho(const std::vector<Pair>& pairs) {
  std::vector<double> measured;
  std::vector<double> simulated;
  for (const Pair& pair : pairs) {
    measured.push_back(pair.measured);
    simulated.push_back(pair.simulated);
  }
  return pearson(ranks(measured), ranks(simulated));
}

double regret(const std::vector<Pair>& pairs) {
  const auto by = [&](double Pair::*side) {
    return std::min_element(pairs.begin(), pairs.end(),
                            [side](const Pair& a, const Pair& b) { return a.*side < b.*side; });
  };
  return by(&Pair::simulated)->measured / by(&Pair::measured)->measured - 1.0;
}

}  // namespace trainsim::validation
