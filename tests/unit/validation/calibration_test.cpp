// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/calibration.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace trainsim::validation {
namespace {

/// Times of size / rate + start, for sizes 1, 2, 4, …, 512.
std::vector<Pair> straight_line(double true_rate, double true_start, const std::vector<double>& values) {
  std::vector<Pair> pairs;
  for (double size = 1; size <= 512; size *= 2) {
    pairs.push_back({size / true_rate + true_start, size / values[0] + values[1]});
  }
  return pairs;
}

std::vector<Parameter> rate_and_start(double rate, double start) {
  return {{"rate", 1, 100, rate, "", 1}, {"start", 0, 10, start, "s", 1}};
}

TEST(Calibration, FindsTheConstantsThatMadeTheData) {
  const Calibration result = calibrate(rate_and_start(50, 1), [](const std::vector<double>& values) {
    return straight_line(20, 2.5, values);
  });
  ASSERT_EQ(result.fits.size(), 2U);
  EXPECT_NEAR(result.fits[0].value, 20, 0.2);
  EXPECT_NEAR(result.fits[1].value, 2.5, 0.025);
  EXPECT_GT(result.before.mean, 0.3);
  EXPECT_LT(result.after.mean, 0.005);
  for (const Fit& fit : result.fits) {
    EXPECT_EQ(fit.refused, "");
    EXPECT_LE(fit.low, fit.value);
    EXPECT_GE(fit.high, fit.value);
    EXPECT_LT(fit.high - fit.low, 0.2 * fit.value);
  }
}

TEST(Calibration, IsNotFooledByAnOutlier) {
  const Calibration result = calibrate(rate_and_start(50, 1), [](const std::vector<double>& values) {
    std::vector<Pair> pairs = straight_line(20, 2.5, values);
    pairs[3].measured *= 10;
    return pairs;
  });
  EXPECT_NEAR(result.fits[0].value, 20, 0.5);
}

TEST(Calibration, RefusesWhatTheDataDoNotDependOn) {
  // The start is a millionth of every time.
  const Calibration result =
      calibrate({{"rate", 1, 100, 50, "", 1}, {"start", 0, 1e-6, 0.5e-6, "s", 1}},
                [](const std::vector<double>& values) { return straight_line(20, 0, values); });
  EXPECT_EQ(result.fits[0].refused, "");
  EXPECT_EQ(result.fits[1].refused, "only 0 of 10 measurements depend on it; at least 3 must");
  EXPECT_EQ(result.fits[1].value, 0.5e-6);
}

TEST(Calibration, RefusesTwoMeasurements) {
  const Calibration result = calibrate({{"rate", 1, 100, 50, "", 1}}, [](const std::vector<double>& values) {
    return std::vector<Pair>{{1 / 20.0, 1 / values[0]}, {2 / 20.0, 2 / values[0]}};
  });
  EXPECT_EQ(result.fits[0].refused, "only 2 of 2 measurements depend on it; at least 3 must");
}

TEST(Calibration, StaysInTheBounds) {
  const Calibration result = calibrate({{"rate", 1, 10, 5, "", 1}}, [](const std::vector<double>& values) {
    std::vector<Pair> pairs;
    for (double size = 1; size < 10; ++size) pairs.push_back({size / 20, size / values[0]});
    return pairs;
  });
  EXPECT_NEAR(result.fits[0].value, 10, 0.01);
  EXPECT_LE(result.fits[0].high, 10);
}

}  // namespace
}  // namespace trainsim::validation
