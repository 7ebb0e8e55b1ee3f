// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

namespace trainsim::validation {

/// A measured value beside the simulated one, in the same unit; both positive.
struct Pair {
  double measured = 0;
  double simulated = 0;

  /// (simulated - measured) / measured.
  double error() const { return simulated / measured - 1.0; }
};

/// Errors of a set of pairs, as shares of the measured values.
struct ErrorStatistics {
  std::size_t rows = 0;
  /// Mean and median of the absolute errors, and mean of the signed ones.
  double mean = 0;
  double median = 0;
  double bias = 0;
  /// Index of the pair with the largest absolute error, and its signed error.
  std::size_t worst_index = 0;
  double worst = 0;
  /// Whether all errors have the same sign.
  bool one_sign = false;
};

/// REQUIRES: at least one pair.
ErrorStatistics error_statistics(const std::vector<Pair>& pairs);

/// Kendall's rank correlation tau-b, in [-1, 1]: of all pairs of rows, those in the same order less those in
/// the opposite one, over those that differ (Kendall 1945, "The treatment of ties in ranking problems"). 0
/// when one side is all ties. REQUIRES: at least two pairs.
double kendall_tau(const std::vector<Pair>& pairs);

/// Spearman's rank correlation, in [-1, 1]: Pearson's correlation of the ranks, ties sharing their mean rank.
/// 0 when one side is all ties. REQUIRES: at least two pairs.
double spearman_rho(const std::vector<Pair>& pairs);

/// How much longer than the fastest measured one the row takes (measured) that is fastest simulated, as a
/// share. REQUIRES: at least one pair.
double regret(const std::vector<Pair>& pairs);

}  // namespace trainsim::validation
