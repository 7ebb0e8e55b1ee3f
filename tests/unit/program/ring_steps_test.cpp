// SPDX-License-Identifier: Apache-2.0
#include "sim/program/ring_steps.hpp"

#include <gtest/gtest.h>

namespace trainsim::program {
namespace {

/// An all-reduce of 4 members on 2 nodes: 6 steps; every other edge leads to the other node.
constexpr RingSteps kSteps{6, 4, 2, 1.0, 3.0};

TEST(RingStepTimes, OfEqualEdgesAddUp) {
  EXPECT_DOUBLE_EQ((RingSteps{6, 4, 1, 1.0, 3.0}.time(12, 0)), 6 * (2 + 1));
  EXPECT_DOUBLE_EQ((RingSteps{6, 4, 4, 1.0, 3.0}.time(0, 12)), 6 * (2 + 3));
}

/// Without bytes a part crosses three edges of each kind.
TEST(RingStepTimes, CrossTheNetworkOnEveryRound) {
  EXPECT_DOUBLE_EQ(kSteps.time(0, 0), 3 * 1 + 3 * 3);
}

/// The slow edge sends for 10 in each of 6 steps; a round of 1 + 1 + 10 + 3 is less than its two steps, so
/// only the last part's latency follows.
TEST(RingStepTimes, HideLatencyBehindTheSlowestEdge) {
  EXPECT_DOUBLE_EQ(kSteps.time(6, 60), 60 + 3);
}

/// The slow edge sends for 3; a round of 2 + 1 + 3 + 3 is more than its two steps, and there are three.
TEST(RingStepTimes, TakeRoundsWhereLatencyDoesNotHide) {
  EXPECT_DOUBLE_EQ(kSteps.time(12, 18), 3 * 9);
}

}  // namespace
}  // namespace trainsim::program
