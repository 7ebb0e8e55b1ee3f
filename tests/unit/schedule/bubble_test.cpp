// SPDX-License-Identifier: Apache-2.0
// Bubble of each schedule with equal stages and free transfers, by list scheduling, against the closed forms.
#include <gtest/gtest.h>

#include "tests/unit/schedule/written_schedule.hpp"

namespace trainsim::schedule {
namespace {

double closed_form(std::int64_t p, std::int64_t v, std::int64_t m) {
  return static_cast<double>(p - 1) / static_cast<double>(v * m + p - 1);
}

// p = 2, m = 2, F = 1, B = 2:
//   stage 1  F0 1-2, B0 2-4, F1 4-5, B1 5-7 (starts when F0 of stage 0 ends)
//   stage 0  F0 0-1, F1 1-2, B0 4-6, B1 7-9 (each backward waits for stage 1)
// Both stages are busy for 2 (1 + 2) = 6 of 9 units, so the bubble is 1/3 = (2-1) / (2+2-1).
TEST(Makespan, OfTwoStagesAndTwoMicroBatchesByHand) {
  EXPECT_EQ(makespan(one_f_one_b(2, 2)), 9);
  EXPECT_DOUBLE_EQ(bubble_ratio(one_f_one_b(2, 2)), 1.0 / 3.0);
}

TEST(Bubble, OfGpipeAndOneFOneBIsTheClosedForm) {
  for (const std::int64_t p : {1, 2, 4, 8, 16}) {
    for (std::int64_t m = 1; m <= 64; ++m) {
      EXPECT_NEAR(bubble_ratio(gpipe(p, m)), closed_form(p, 1, m), 1e-12) << "p " << p << ", m " << m;
      EXPECT_NEAR(bubble_ratio(one_f_one_b(p, m)), closed_form(p, 1, m), 1e-12) << "p " << p << ", m " << m;
    }
  }
}

TEST(Bubble, OfInterleavedIsTheClosedForm) {
  for (const std::int64_t p : {1, 2, 4, 8, 16}) {
    for (const std::int64_t v : {1, 2, 3, 4}) {
      for (std::int64_t m = p; m <= 64; m += p) {
        EXPECT_NEAR(bubble_ratio(interleaved(p, v, m)), closed_form(p, v, m), 1e-12)
            << "p " << p << ", v " << v << ", m " << m;
      }
    }
  }
}

// Reference values of the published zero-bubble schedulers for the two schedules they compare with, to four
// digits.
TEST(Bubble, MatchesThePublishedScheduler) {
  constexpr double half_digit = 5e-5;
  EXPECT_NEAR(bubble_ratio(one_f_one_b(4, 8)), 0.2727, half_digit);
  EXPECT_NEAR(bubble_ratio(one_f_one_b(8, 16)), 0.3043, half_digit);
  EXPECT_NEAR(bubble_ratio(one_f_one_b(8, 64)), 0.0986, half_digit);
  EXPECT_NEAR(bubble_ratio(interleaved(4, 2, 8)), 0.1579, half_digit);
  EXPECT_NEAR(bubble_ratio(interleaved(8, 2, 16)), 0.1795, half_digit);
  EXPECT_NEAR(bubble_ratio(interleaved(8, 2, 64)), 0.0519, half_digit);
}

}  // namespace
}  // namespace trainsim::schedule
