// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/statistics.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace trainsim::validation {
namespace {

constexpr double kTight = 1e-12;

TEST(ErrorStatistics, OfThreePairs) {
  // Errors +10 %, -30 %, +5 %.
  const ErrorStatistics errors = error_statistics({{10, 11}, {10, 7}, {20, 21}});
  EXPECT_EQ(errors.rows, 3U);
  EXPECT_NEAR(errors.mean, 0.15, kTight);
  EXPECT_NEAR(errors.median, 0.10, kTight);
  EXPECT_NEAR(errors.bias, -0.05, kTight);
  EXPECT_NEAR(errors.worst, -0.30, kTight);
  EXPECT_EQ(errors.worst_index, 1U);
  EXPECT_FALSE(errors.one_sign);
}

TEST(ErrorStatistics, MedianOfAnEvenNumberIsTheMiddlesMean) {
  const ErrorStatistics errors = error_statistics({{10, 11}, {10, 12}, {10, 14}, {10, 18}});
  EXPECT_NEAR(errors.median, 0.30, kTight);
  EXPECT_TRUE(errors.one_sign);
}

TEST(ErrorStatistics, AllTooFastIsOneSignToo) {
  EXPECT_TRUE(error_statistics({{10, 9}, {10, 8}}).one_sign);
  EXPECT_FALSE(error_statistics({{10, 9}, {10, 11}}).one_sign);
}

TEST(KendallTau, CountsPairsInTheSameOrder) {
  EXPECT_NEAR(kendall_tau({{1, 10}, {2, 20}, {3, 30}}), 1.0, kTight);
  EXPECT_NEAR(kendall_tau({{1, 30}, {2, 20}, {3, 10}}), -1.0, kTight);
  // Of six pairs one is in the opposite order: (5 - 1) / 6.
  EXPECT_NEAR(kendall_tau({{1, 1}, {2, 3}, {3, 2}, {4, 4}}), 4.0 / 6.0, kTight);
}

TEST(KendallTau, OfTiesIsTauB) {
  // Measured differ in all three pairs, simulated in two, both in the same order: 2 / sqrt(3 * 2).
  EXPECT_NEAR(kendall_tau({{1, 1}, {2, 1}, {3, 2}}), 2.0 / std::sqrt(6.0), kTight);
  EXPECT_EQ(kendall_tau({{1, 1}, {2, 1}}), 0.0);
}

TEST(SpearmanRho, ComparesRanks) {
  EXPECT_NEAR(spearman_rho({{1, 10}, {2, 100}, {3, 1000}}), 1.0, kTight);
  // Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * (0 + 1 + 1 + 0) / (4 * 15) = 0.8.
  EXPECT_NEAR(spearman_rho({{1, 1}, {2, 3}, {3, 2}, {4, 4}}), 0.8, kTight);
  // Ranks 1 2 3 against 1.5 1.5 3: covariance 1.5, deviations sqrt(2) and sqrt(1.5).
  EXPECT_NEAR(spearman_rho({{1, 1}, {2, 1}, {3, 2}}), 1.5 / std::sqrt(2.0 * 1.5), kTight);
  EXPECT_EQ(spearman_rho({{1, 1}, {2, 1}}), 0.0);
}

TEST(Regret, IsWhatTheChosenPlanLosesAgainstTheBest) {
  EXPECT_NEAR(regret({{10, 9}, {12, 8}, {15, 20}}), 0.2, kTight);
  EXPECT_EQ(regret({{10, 8}, {12, 9}}), 0.0);
  EXPECT_EQ(regret({{10, 8}}), 0.0);
}

}  // namespace
}  // namespace trainsim::validation
