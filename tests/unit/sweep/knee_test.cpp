// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/knee.hpp"

#include <gtest/gtest.h>

namespace trainsim::sweep {
namespace {

/// Rate of a pipeline of 4 stages whose only loss is the bubble: m / (m + 3).
Trial pipeline(double m) {
  return {m, m / (m + 3)};
}

TEST(Knee, GainPerDoublingIsThatOfAStepOfTwo) {
  EXPECT_NEAR(gain_per_doubling({1, 100}, {2, 110}), 0.10, 1e-12);
  // Four times the size for 21 % more: two doublings of 10 %.
  EXPECT_NEAR(gain_per_doubling({1, 100}, {4, 121}), 0.10, 1e-12);
  EXPECT_NEAR(gain_per_doubling({1, 100}, {2, 90}), -0.10, 1e-12);
}

TEST(Knee, OfAPipelineIsWhereADoublingGainsLessThanOnePercent) {
  // From m to 2m: (2m / (2m + 3)) / (m / (m + 3)) - 1 = 3 / (2m + 3); at m = 128 it is 3 / 259 = 1.16 %, at
  // 256 3 / 515 = 0.58 %.
  const auto knee = find_knee({pipeline(64), pipeline(128), pipeline(256), pipeline(512), pipeline(1024)});
  ASSERT_TRUE(knee);
  EXPECT_EQ(knee->size, 256);
}

TEST(Knee, IsAbsentWhileDoublingsGain) {
  EXPECT_FALSE(find_knee({pipeline(8), pipeline(16), pipeline(32)}));
  EXPECT_FALSE(find_knee({pipeline(8)}));
  EXPECT_FALSE(find_knee({}));
}

TEST(Knee, IsBehindTheLastGainEvenAfterADip) {
  // A loss from 2 to 4 is made up for from 4 to 8.
  const auto knee = find_knee({{1, 100}, {2, 101.5}, {4, 100}, {8, 110}, {16, 110.5}});
  ASSERT_TRUE(knee);
  EXPECT_EQ(knee->size, 8);
}

TEST(Knee, DoesNotDependOnTheOrder) {
  const auto knee = find_knee({pipeline(1024), pipeline(128), pipeline(512), pipeline(256)});
  ASSERT_TRUE(knee);
  EXPECT_EQ(knee->size, 256);
}

}  // namespace
}  // namespace trainsim::sweep
