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

/// Makespan without the time in which a stage works.
std::int64_t bubble(const Schedule& schedule, const Lengths& lengths) {
  return makespan(schedule, lengths) -
         schedule.micro_batches * (lengths.forward + lengths.backward + lengths.weight);
}

// Qi et al. 2023, table 2: (p-1)(T_F + T_B - T_W), as long as weight gradients, which
// fill gaps of the length of a forward or of input gradients, take no longer than either.
TEST(Bubble, OfZeroBubbleH1IsThePapers) {
  for (const Lengths& lengths : {Lengths{1, 1, 1}, Lengths{5, 6, 4}, Lengths{10, 9, 4}, Lengths{3, 7, 3}}) {
    for (const std::int64_t p : {1, 2, 4, 8, 16}) {
      for (const std::int64_t m : {p, p + 1, 3 * p, 64 + p}) {
        EXPECT_EQ(bubble(zero_bubble_h1(p, m), lengths),
                  (p - 1) * (lengths.forward + lengths.backward - lengths.weight))
            << "p " << p << ", m " << m << ", T_B " << lengths.backward;
      }
    }
  }
}

// With fewer micro-batches than stages weight gradients fill no gap but at the end: (m+p-1)(T_F + T_B) + T_W.
TEST(Bubble, OfZeroBubbleH1WithFewMicroBatches) {
  for (std::int64_t m = 1; m <= 8; ++m) {
    EXPECT_EQ(makespan(zero_bubble_h1(8, m), {5, 6, 4}), (m + 8 - 1) * 11 + 4) << m;
  }
}

// Stages end as much later as they began, so that each is busy without a gap.
TEST(Bubble, OfZeroBubbleH2IsThatStagesBeginOneAfterTheOther) {
  for (const std::int64_t p : {1, 2, 4, 8, 16}) {
    for (const std::int64_t m : {2 * p - 1, 2 * p, 5 * p})
      EXPECT_EQ(bubble(zero_bubble_h2(p, m), kAllEqual), p - 1) << "p " << p << ", m " << m;
  }
}

// Reference values of the published schedulers for equal lengths (ZB1P has the bubble of H1, ZB2P that of
// H2), and with F / B / W = 1 / 1.2 / 0.8; to four digits.
TEST(Bubble, OfZeroBubbleMatchesThePublishedScheduler) {
  constexpr double half_digit = 5e-5;
  EXPECT_NEAR(bubble_ratio(zero_bubble_h1(4, 8), kAllEqual), 0.1111, half_digit);
  EXPECT_NEAR(bubble_ratio(zero_bubble_h1(8, 16), kAllEqual), 0.1273, half_digit);
  EXPECT_NEAR(bubble_ratio(zero_bubble_h1(8, 64), kAllEqual), 0.0352, half_digit);
  EXPECT_NEAR(bubble_ratio(zero_bubble_h2(4, 8), kAllEqual), 0.1111, half_digit);
  EXPECT_NEAR(bubble_ratio(zero_bubble_h2(8, 16), kAllEqual), 0.1273, half_digit);
  EXPECT_NEAR(bubble_ratio(zero_bubble_h2(8, 64), kAllEqual), 0.0352, half_digit);
  EXPECT_NEAR(bubble_ratio(zero_bubble_h1(8, 64), {5, 6, 4}), 0.0486, half_digit);
}

TEST(BubbleTheory, OfZeroBubbleHoldsFromAsManyMicroBatchesAsItNeeds) {
  plan::ParallelPlan plan;
  plan.pipeline_parallel = 8;
  const auto theory = [&plan](plan::ScheduleKind kind, std::int64_t micro_batches) {
    plan.schedule = kind;
    plan.global_batch_size = micro_batches;
    return bubble_ratio_theory(plan);
  };
  EXPECT_EQ(theory(plan::ScheduleKind::kZeroBubbleH1, 7), std::nullopt);
  EXPECT_EQ(theory(plan::ScheduleKind::kZeroBubbleH1, 8), 7.0 / 31.0);
  EXPECT_EQ(theory(plan::ScheduleKind::kZeroBubbleH2, 14), std::nullopt);
  EXPECT_EQ(theory(plan::ScheduleKind::kZeroBubbleH2, 15), 7.0 / 52.0);
}

}  // namespace
}  // namespace trainsim::schedule
