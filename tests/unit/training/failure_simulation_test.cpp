// SPDX-License-Identifier: Apache-2.0
#include "sim/training/failure_simulation.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace trainsim::training {
namespace {

constexpr Seconds kMinute = 60;
constexpr Seconds kHour = 3600;
constexpr std::uint64_t kRuns = 4000;
/// Standard errors that a mean may be off: more happens by chance once in 16,000 tests.
constexpr double kErrors = 4.0;

/// Mean and variance of simulated wall times.
struct Sample {
  double mean = 0;
  double variance = 0;
  double failures = 0;
  double standard_error() const { return std::sqrt(variance / static_cast<double>(kRuns)); }
};

Sample sample(const std::vector<Segments>& list, Seconds write, const Hazard& hazard) {
  Sample result;
  double squares = 0;
  std::mt19937_64 random(7);
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const SimulatedRun simulated = simulate_failures(list, write, hazard, random);
    const double wall = simulated.wall.total();
    result.mean += wall;
    squares += wall * wall;
    result.failures += static_cast<double>(simulated.failures);
  }
  const auto runs = static_cast<double>(kRuns);
  result.mean /= runs;
  result.failures /= runs;
  result.variance = squares / runs - result.mean * result.mean;
  return result;
}

/// 500 hours of steps of 6 s with a checkpoint of 5 minutes after every `interval`.
std::vector<Segments> daly_run(Seconds interval) {
  const auto steps = static_cast<std::int64_t>(interval / 6.0);
  return segments({{{1, 300'000}, 6.0}}, {steps, 5 * kMinute, 5 * kMinute});
}

TEST(Failures, DoNothingWhenTheyAreRare) {
  const std::vector<Segments> list = daly_run(2 * kHour);
  std::mt19937_64 random(1);
  const SimulatedRun run = simulate_failures(list, 5 * kMinute, {1e15, kHour}, random);
  EXPECT_EQ(run.failures, 0);
  EXPECT_DOUBLE_EQ(run.wall.total(), failure_free_time(list));
  EXPECT_DOUBLE_EQ(run.wall.work, 500 * kHour);
  EXPECT_EQ(run.wall.lost, 0);
}

/// The time until w seconds pass without an event of a Poisson process of mean interval M has the mean
/// M (e^a - 1) and the variance M² (e^2a - 2a e^a - 1), a = w / M: the standard error follows, and so does
/// how far the mean of that many runs may be off.
TEST(Failures, MatchMeanAndVarianceOfOneStretch) {
  const Hazard hazard{100, 0};
  const std::vector<Segments> list = {{1, 60, 10}};
  const double a = 0.7;
  const double mean = 100 * (std::exp(a) - 1);
  const double variance = 1e4 * (std::exp(2 * a) - 2 * a * std::exp(a) - 1);
  const Sample result = sample(list, 10, hazard);
  EXPECT_NEAR(result.mean, mean, kErrors * std::sqrt(variance / static_cast<double>(kRuns)));
  // The variance of an estimated variance is (kurtosis - 1) / N of its square; with a kurtosis below 20: 7 %.
  EXPECT_NEAR(result.variance / variance, 1.0, kErrors * 0.07);
}

/// The cases of Daly 2006, figures 3 to 5: 500 hours of work, dumps of 5 minutes, restarts of 10 minutes, and
/// an MTBF of 24 hours and of 6 hours, at the optimum and around it.
TEST(Failures, MatchDalysClosedForm) {
  for (const Seconds mtbf : {24 * kHour, 6 * kHour}) {
    const Hazard hazard{mtbf, 10 * kMinute};
    for (const Seconds interval : {0.5 * kHour, 57 * kMinute, 2 * kHour, 4 * kHour}) {
      const std::vector<Segments> list = daly_run(interval);
      const Sample result = sample(list, 5 * kMinute, hazard);
      const Seconds expected = expected_time(list, hazard);
      EXPECT_NEAR(result.mean, expected, kErrors * result.standard_error()) << mtbf << ", " << interval;
      // Failures come with the rate 1 / M at any time: as many as the wall time has MTBFs. In a segment of
      // length a M their number varies e^a times as much as a Poisson's, which is at most twice here.
      const double count = expected / mtbf;
      EXPECT_NEAR(result.failures, count, 2 * kErrors * std::sqrt(count / static_cast<double>(kRuns)));
    }
  }
}

/// Restarts that fail are begun anew, so that a restart of R takes M (e^(R/M) - 1) on average.
TEST(Failures, InterruptRestarts) {
  const Hazard hazard{100, 150};
  double restarts = 0;
  double successes = 0;
  std::mt19937_64 random(3);
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const SimulatedRun simulated = simulate_failures({{1, 60, 10}}, 10, hazard, random);
    restarts += simulated.wall.restarts;
    successes += 1;
  }
  // A stretch of 70 s needs e^0.7 - 1 = 1.01375 restarts on average.
  const double expected = (std::exp(0.7) - 1) * 100 * (std::exp(1.5) - 1);
  // Each restart has the variance of a stretch of 150 s, and their number one of e^1.4 - e^0.7.
  const double each = 1e4 * (std::exp(3.0) - 3 * std::exp(1.5) - 1);
  const double variance =
      (std::exp(0.7) - 1) * each + (std::exp(1.4) - std::exp(0.7)) * std::pow(100 * (std::exp(1.5) - 1), 2);
  EXPECT_NEAR(restarts / successes, expected, kErrors * std::sqrt(variance / static_cast<double>(kRuns)));
}

/// Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 GPUs (arXiv 2407.21783, section 3.3.4),
/// which is one in 50,677 GPU-hours. Over as much wall time as many must come out.
TEST(Failures, ComeAsOftenAsThoseOfLlama3) {
  const Hazard hazard{50'677 * kHour / 16'384, 5 * kMinute};
  EXPECT_NEAR(hazard.mtbf / kHour, 54 * 24 / 419.0, 0.001);
  const std::vector<Segments> list = segments({{{1, 40'000}, 100.0}}, {20, 30, 30});
  const Sample result = sample(list, 30, hazard);
  const double in_54_days = result.failures / result.mean * 54 * 24 * kHour;
  EXPECT_NEAR(in_54_days, 419, kErrors * std::sqrt(419.0 / static_cast<double>(kRuns)));
}

TEST(Failures, AddUpAndRepeatBySeed) {
  const std::vector<Segments> list = segments({{{1, 500}, 3.0}, {{2, 997}, 5.0}}, {40, 20, 35});
  const Hazard hazard{900, 120};
  std::mt19937_64 random(5);
  std::mt19937_64 same(5);
  for (std::uint64_t run = 0; run < 200; ++run) {
    const SimulatedRun one = simulate_failures(list, 35, hazard, random);
    const SimulatedRun again = simulate_failures(list, 35, hazard, same);
    EXPECT_EQ(one.wall.total(), again.wall.total());
    // Whatever was lost, all steps were made and all checkpoints kept.
    EXPECT_NEAR(one.wall.work, 500 * 3.0 + 997 * 5.0, 1e-6);
    EXPECT_NEAR(one.wall.work + one.wall.checkpoints, failure_free_time(list), 1e-6);
    EXPECT_GE(one.wall.lost, 0);
    EXPECT_GE(one.wall.restarts, 0);
  }
  // The next run, and those of another seed, are other ones.
  std::mt19937_64 other(6);
  const Seconds first = simulate_failures(list, 35, hazard, random).wall.total();
  EXPECT_NE(first, simulate_failures(list, 35, hazard, random).wall.total());
  EXPECT_NE(first, simulate_failures(list, 35, hazard, other).wall.total());
}

/// A checkpoint that is still being written when a failure comes is of no use. Between two failures of mean
/// interval M, n segments of 9 s end, on average q / (1 - q) with q = e^(-9/M), and the failure comes u
/// seconds after the last of them. If writing goes on for 8 s then, one of the n is lost where n > 0 and u <
/// 8, which are independent: q (1 - e^(-8/M)) / (1 - q) of them. So many fewer segments for each failure make
/// the run longer, and the time that is added for each of its failures is M (1 - e^(-8/M)).
TEST(Failures, LoseCheckpointsThatAreBeingWritten) {
  const std::vector<Segments> list = segments({{{1, 400'000}, 2.0}}, {4, 1.0, 1.0});
  const Hazard hazard{5000, 0};
  const Sample at_once = sample(list, 1.0, hazard);
  const Sample late = sample(list, 9.0, hazard);
  const double per_failure = (late.mean - at_once.mean) / late.failures;
  const double expected = hazard.mtbf * (1 - std::exp(-8.0 / hazard.mtbf));
  // Both have the same failures, and go on from each at the same time. 9 s or nothing have the variance
  // 81 * 8/9 * 1/9 = 8 for each failure. There is 8 / M of a failure more for each, which loses 81 / 3 s² at
  // most: below 0.1.
  const double variance = 8.1;
  EXPECT_NEAR(per_failure, expected,
              kErrors * std::sqrt(variance / (late.failures * static_cast<double>(kRuns))));
}

}  // namespace
}  // namespace trainsim::training
