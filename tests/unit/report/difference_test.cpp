// SPDX-License-Identifier: Apache-2.0
// Where time and memory moved from one result to another: exact sums, both directions, and sentences.
#include "sim/report/difference.hpp"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/report/format.hpp"
#include "tests/unit/report/outcome.hpp"

namespace trainsim::report {
namespace {

using program::Cause;
using program::MemoryCategory;

constexpr Bytes kGiB = Bytes{1} << 30;

/// A result with a breakdown and a memory peak, both added up.
Figures figures(std::string name, const std::vector<std::pair<Cause, Seconds>>& causes,
                const std::vector<std::pair<MemoryCategory, Bytes>>& memory) {
  Figures result;
  result.name = std::move(name);
  result.model = "tiny";
  result.gpus = 8;
  result.tokens = 1000;
  for (const auto& [cause, seconds] : causes) {
    result.breakdown[static_cast<std::size_t>(cause)] = seconds;
    result.step_time += seconds;
  }
  for (const auto& [category, bytes] : memory) {
    result.memory_at_peak[static_cast<std::size_t>(category)] = bytes;
    result.peak_memory += bytes;
  }
  return result;
}

Figures slow() {
  return figures("A",
                 {{Cause::kForward, 4}, {Cause::kBackward, 8}, {Cause::kBubble, 3}, {Cause::kRecompute, 1}},
                 {{MemoryCategory::kParameters, 10 * kGiB}, {MemoryCategory::kActivations, 30 * kGiB}});
}

Figures fast() {
  return figures(
      "B",
      {{Cause::kForward, 4}, {Cause::kBackward, 8}, {Cause::kBubble, 1}, {Cause::kTensorCommunication, 1}},
      {{MemoryCategory::kParameters, 12 * kGiB}, {MemoryCategory::kActivations, 20 * kGiB}});
}

double sum(const std::array<Seconds, program::kCauses>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Relative to what shares are of.
void expect_exact(const Difference& difference) {
  EXPECT_NEAR(sum(difference.by_cause), difference.time, 1e-9 * difference.base);
  EXPECT_EQ(std::accumulate(difference.by_category.begin(), difference.by_category.end(), Bytes{0}),
            difference.memory);
}

TEST(Difference, PartsAreThoseOfTheSecondLessThoseOfTheFirst) {
  const Difference result = difference(slow(), fast());
  // 16 s against 14 s: bubble 1 - 3, recompute 0 - 1, tensor communication 1 - 0.
  EXPECT_EQ(result.base, 16);
  EXPECT_EQ(result.time, -2);
  EXPECT_EQ(result.share(), -0.125);
  EXPECT_EQ(result.by_cause[static_cast<std::size_t>(Cause::kBubble)], -2);
  EXPECT_EQ(result.by_cause[static_cast<std::size_t>(Cause::kRecompute)], -1);
  EXPECT_EQ(result.by_cause[static_cast<std::size_t>(Cause::kTensorCommunication)], 1);
  EXPECT_EQ(result.by_cause[static_cast<std::size_t>(Cause::kForward)], 0);
  // 40 GiB against 32 GiB.
  EXPECT_EQ(result.memory, -8 * kGiB);
  EXPECT_EQ(result.by_category[static_cast<std::size_t>(MemoryCategory::kParameters)], 2 * kGiB);
  EXPECT_EQ(result.by_category[static_cast<std::size_t>(MemoryCategory::kActivations)], -10 * kGiB);
  expect_exact(result);
}

TEST(Difference, AddsUpForSimulatedPlansIsNegatedByTheOtherDirectionAndZeroToItself) {
  std::vector<Figures> all;
  for (const plan::ParallelPlan& plan : tests::varied_plans())
    all.push_back(figures_of(tests::simulated(tests::gpt({4}), plan).summary(), "run"));
  for (const Figures& a : all) {
    for (const Figures& b : all) {
      const Difference there = difference(a, b);
      const Difference back = difference(b, a);
      expect_exact(there);
      EXPECT_EQ(there.time, -back.time);
      EXPECT_EQ(there.memory, -back.memory);
      for (std::size_t c = 0; c < there.by_cause.size(); ++c) EXPECT_EQ(there.by_cause[c], -back.by_cause[c]);
      for (std::size_t c = 0; c < there.by_category.size(); ++c)
        EXPECT_EQ(there.by_category[c], -back.by_category[c]);
    }
    const Difference none = difference(a, a);
    EXPECT_EQ(none.time, 0);
    for (const Seconds seconds : none.by_cause) EXPECT_EQ(seconds, 0);
  }
}

TEST(Difference, TimesArePerTokenWhenBatchesDiffer) {
  Figures twice = fast();
  twice.tokens = 2000;
  const Difference result = difference(slow(), twice);
  // 16 ms against 14 s / 2000 = 7 ms per token; bubble 1 s / 2000 - 3 s / 1000.
  EXPECT_TRUE(result.per_token);
  EXPECT_DOUBLE_EQ(result.base, 0.016);
  EXPECT_DOUBLE_EQ(result.time, -0.009);
  EXPECT_DOUBLE_EQ(result.by_cause[static_cast<std::size_t>(Cause::kBubble)], -0.0025);
  expect_exact(result);
}

TEST(Difference, SentencesNameTheLargestPartsAndTheRest) {
  const Difference faster = difference(slow(), fast());
  EXPECT_EQ(
      time_sentence(faster),
      "B takes 12.5 % less time per step than A (14.00 s, not 16.00 s): bubble -2.00 s, recompute -1.00 s, "
      "tensor communication +1.00 s.");
  EXPECT_EQ(
      memory_sentence(faster),
      "The fullest rank of B needs 8.00 GiB less than that of A (32.0 GiB, not 40.0 GiB): activations -10.0 "
      "GiB, parameters +2.00 GiB.");
  EXPECT_EQ(
      time_sentence(difference(fast(), slow())),
      "A takes 14.3 % more time per step than B (16.00 s, not 14.00 s): bubble +2.00 s, recompute +1.00 s, "
      "tensor communication -1.00 s.");
  EXPECT_EQ(time_sentence(difference(slow(), slow())), "A takes as long per step as A (16.00 s).");
  EXPECT_EQ(memory_sentence(difference(slow(), slow())),
            "The fullest rank of A needs as much memory as that of A (40.0 GiB).");
  // Optimizer and launch move by less than a twentieth of what the bubble does: together they are the rest.
  const Figures base = figures("A", {{Cause::kForward, 10}, {Cause::kBubble, 6}}, {});
  const Figures small = figures(
      "B", {{Cause::kForward, 10}, {Cause::kBubble, 5}, {Cause::kOptimizer, 0.04}, {Cause::kLaunch, 0.02}},
      {});
  EXPECT_EQ(
      time_sentence(difference(base, small)),
      "B takes 5.9 % less time per step than A (15.06 s, not 16.00 s): bubble -1.00 s, the rest +0.06 s.");
}

TEST(Difference, SmallChangesAreNamedInSmallUnits) {
  const Figures base = figures("A", {{Cause::kForward, 10}, {Cause::kBubble, 6}}, {});
  const Figures other = figures("B", {{Cause::kForward, 9.976}, {Cause::kBubble, 5.998}}, {});
  EXPECT_EQ(
      time_sentence(difference(base, other)),
      "B takes 0.16 % less time per step than A (15.97 s, not 16.00 s): forward -24.0 ms, bubble -2.0 ms.");
}

TEST(Difference, EqualTimesMayHideChangesThatCancel) {
  const Figures moved = figures("B", {{Cause::kForward, 4}, {Cause::kBackward, 8}, {Cause::kBubble, 4}},
                                {{MemoryCategory::kParameters, 40 * kGiB}});
  EXPECT_EQ(time_sentence(difference(slow(), moved)),
            "B takes as long per step as A (16.00 s): recompute -1.00 s, bubble +1.00 s.");
  EXPECT_EQ(
      memory_sentence(difference(slow(), moved)),
      "The fullest rank of B needs as much memory as that of A (40.0 GiB): parameters +30.0 GiB, activations "
      "-30.0 GiB.");
}

TEST(Difference, SaysWhatHasToBeKnownToReadIt) {
  Figures other = fast();
  other.model = "large";
  other.gpus = 16;
  other.tokens = 2000;
  other.verdict = Verdict::kDoesNotFit;
  const std::vector<std::string> text = sentences(difference(slow(), other));
  ASSERT_EQ(text.size(), 5U);
  EXPECT_EQ(text[0], "A trains tiny and B large: times are not of the same work.");
  EXPECT_EQ(text[1], "A step of A has 1000 tokens and one of B 2000: times are compared per token.");
  EXPECT_TRUE(text[2].starts_with("B takes 56.2 % less time per token than A (7.000 ms, not 16.00 ms): "))
      << text[2];
  // Twice the GPUs for 7/16 of the time: 14/16.
  EXPECT_EQ(text[3], "B uses 16 GPUs, A 8: its GPU time is 12.5 % less per token.");
  EXPECT_TRUE(text[4].ends_with(" A: fits; B: does not fit.")) << text[4];
}

TEST(Difference, ChangesStandInTheUnitOfTheWhole) {
  EXPECT_EQ(signed_duration(-0.9, 18.13), "-0.90 s");
  EXPECT_EQ(signed_duration(12.5, 1.5), "+12.500 s");
  EXPECT_EQ(signed_duration(0.0004, 0.25), "+0.4 ms");
  EXPECT_EQ(signed_duration(2e-7, 5e-6), "+0.200 us");
  EXPECT_EQ(signed_duration(0, 2), "0.000 s");
  EXPECT_EQ(signed_duration(-1e-9, 2), "0.000 s");
  EXPECT_EQ(signed_gib(-kGiB), "-1.00 GiB");
  EXPECT_EQ(signed_gib(kGiB), "+1.00 GiB");
  EXPECT_EQ(signed_gib(0), "0 MiB");
}

}  // namespace
}  // namespace trainsim::report
