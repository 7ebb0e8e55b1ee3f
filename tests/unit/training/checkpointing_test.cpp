// SPDX-License-Identifier: Apache-2.0
#include "sim/training/checkpointing.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace trainsim::training {
namespace {

constexpr Seconds kMinute = 60;
constexpr Seconds kHour = 3600;

TEST(CheckpointInterval, IsYoungsToFirstOrder) {
  // sqrt(2 · 300 · 86,400) = 7200, and with a quarter of the MTBF half of it.
  EXPECT_DOUBLE_EQ(young_interval(5 * kMinute, {24 * kHour, 0}), 7200);
  EXPECT_DOUBLE_EQ(young_interval(5 * kMinute, {6 * kHour, 0}), 3600);
}

/// Daly 2006, captions of figures 3 to 5: for a dump of 5 minutes and an MTBF of 24 hours, 6 hours and 15
/// minutes the optimum is 117, 57 and 9.1 minutes.
TEST(CheckpointInterval, IsDalysToHigherOrder) {
  EXPECT_NEAR(daly_interval(5 * kMinute, {24 * kHour, 0}) / kMinute, 117, 0.5);
  EXPECT_NEAR(daly_interval(5 * kMinute, {6 * kHour, 0}) / kMinute, 57, 0.5);
  EXPECT_NEAR(daly_interval(5 * kMinute, {15 * kMinute, 0}) / kMinute, 9.1, 0.05);
  // 7200 · (1 + sqrt(1/576) / 3 + 1/576 / 9) - 300 = 7200 + 100 + 1.38889 - 300.
  EXPECT_NEAR(daly_interval(5 * kMinute, {24 * kHour, 0}), 7001.38889, 1e-5);
}

TEST(CheckpointInterval, IsTheMtbfWhenCheckpointsTakeLonger) {
  EXPECT_DOUBLE_EQ(daly_interval(600, {300, 0}), 300);
  EXPECT_DOUBLE_EQ(daly_interval(601, {300, 0}), 300);
}

/// Relative cost of an interval by the closed form: expected time over time without failures and checkpoints.
double cost(Seconds interval, Seconds stall, const Hazard& hazard) {
  return expected_time(interval + stall, hazard) / interval;
}

TEST(CheckpointInterval, OfDalyCostsLeast) {
  for (const Seconds mtbf : {24 * kHour, 6 * kHour, kHour}) {
    const Hazard hazard{mtbf, 10 * kMinute};
    const Seconds best = daly_interval(5 * kMinute, hazard);
    const double least = cost(best, 5 * kMinute, hazard);
    for (const double factor : {0.7, 0.9, 1.1, 1.4})
      EXPECT_LT(least, cost(factor * best, 5 * kMinute, hazard));
  }
}

TEST(ExpectedTime, IsTheStretchWithoutFailures) {
  EXPECT_NEAR(expected_time(100, {1e12, 10}), 100, 1e-6);
}

TEST(ExpectedTime, FollowsTheClosedForm) {
  // M (e - 1) for a stretch as long as the MTBF; a restart as long multiplies by e.
  EXPECT_NEAR(expected_time(50, {50, 0}), 50 * (std::exp(1.0) - 1), 1e-9);
  EXPECT_NEAR(expected_time(50, {50, 50}), 50 * std::exp(1.0) * (std::exp(1.0) - 1), 1e-9);
}

/// Sums of a list of segments.
struct Sums {
  std::int64_t count = 0;
  Seconds work = 0;
  Seconds stall = 0;
};

Sums sums_of(const std::vector<Segments>& list) {
  Sums sums;
  for (const Segments& each : list) {
    sums.count += each.count;
    sums.work += static_cast<double>(each.count) * each.work;
    sums.stall += static_cast<double>(each.count) * each.stall;
  }
  return sums;
}

TEST(Segments, CutARunAtItsCheckpoints) {
  // 10 steps of 2 s, saved every 4: after 4, 8 and 10.
  const std::vector<Segments> list = segments({{{8, 10}, 2.0}}, {4, 1.0, 1.0});
  const Sums sums = sums_of(list);
  EXPECT_EQ(sums.count, 3);
  EXPECT_DOUBLE_EQ(sums.work, 20);
  EXPECT_DOUBLE_EQ(sums.stall, 3);
  EXPECT_DOUBLE_EQ(list.front().work, 8);
  EXPECT_DOUBLE_EQ(list.back().work, 4);
  EXPECT_DOUBLE_EQ(failure_free_time(list), 23);
}

TEST(Segments, GoAcrossBatchSizes) {
  // 3 steps of 1 s and 7 of 2 s, saved every 4: 3 + 2, 8, 4 (two steps).
  const std::vector<Segments> list = segments({{{4, 3}, 1.0}, {{8, 7}, 2.0}}, {4, 1.0, 1.0});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_DOUBLE_EQ(list[0].work, 5);
  EXPECT_DOUBLE_EQ(list[1].work, 8);
  EXPECT_DOUBLE_EQ(list[2].work, 4);
}

TEST(Segments, OfShortBatchSizesAreOne) {
  // 1 + 1 + 3 steps with an interval of 5.
  const std::vector<Segments> list = segments({{{1, 1}, 1.0}, {{2, 1}, 2.0}, {{3, 3}, 3.0}}, {5, 1.0, 1.0});
  ASSERT_EQ(list.size(), 1U);
  EXPECT_DOUBLE_EQ(list[0].work, 12);
}

TEST(Segments, StayFewWhenStepsAreMany) {
  EXPECT_LE(segments({{{8, 1'000'000'000}, 2.0}}, {1, 1.0, 1.0}).size(), 3U);
}

TEST(Segments, WaitForTheLastCheckpointToBeWritten) {
  // Three segments of 8 s; a checkpoint stops training for 1 s and is written after 5 s.
  const Sums sums = sums_of(segments({{{8, 12}, 2.0}}, {4, 1.0, 5.0}));
  EXPECT_DOUBLE_EQ(sums.stall, 1 + 1 + 5);
}

TEST(Segments, WaitForWritingThatTakesLongerThanToTheNext) {
  // Written after 11 s, 8 s of which the next segment hides: two stalls of 3 s and the last of 11 s.
  const Sums sums = sums_of(segments({{{8, 12}, 2.0}}, {4, 1.0, 11.0}));
  EXPECT_DOUBLE_EQ(sums.stall, 3 + 3 + 11);
}

}  // namespace
}  // namespace trainsim::training
