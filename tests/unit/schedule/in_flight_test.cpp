// SPDX-License-Identifier: Apache-2.0
// How many micro-batches a stage holds activations for, against the published counts.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/schedule/written_schedule.hpp"

namespace trainsim::schedule {
namespace {

TEST(PeakInFlight, GpipeHoldsEveryMicroBatch) {
  const Schedule schedule = gpipe(4, 7);
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(peak_in_flight(schedule, stage), 7.0);
}

TEST(PeakInFlight, OneFOneBHoldsOneMicroBatchPerStageFromHereToTheEnd) {
  for (const std::int64_t p : {1, 2, 4, 8}) {
    for (std::int64_t m = 1; m <= 20; ++m) {
      const Schedule schedule = one_f_one_b(p, m);
      for (std::int64_t stage = 0; stage < p; ++stage) {
        EXPECT_EQ(peak_in_flight(schedule, stage), static_cast<double>(std::min(m, p - stage)))
            << "p " << p << ", m " << m << ", stage " << stage;
      }
    }
  }
}

// Korthikanti et al. 2022 (arXiv 2205.05198): interleaving multiplies the p micro-batches of 1F1B's first
// stage by 1 + (p-1)/(p v). In chunk passes: 2 (p-1) + (v-1) p of warm-up and one more = p v + p - 1.
TEST(PeakInFlight, InterleavedHoldsMoreOnTheFirstStage) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t v : {2, 3, 4}) {
      for (const std::int64_t m : {2 * p, 3 * p, 8 * p}) {
        const double passes = static_cast<double>(p * v + p - 1);
        EXPECT_EQ(peak_in_flight(interleaved(p, v, m), 0), passes / static_cast<double>(v))
            << "p " << p << ", v " << v << ", m " << m;
      }
    }
  }
}

// NVIDIA/Megatron-LM issues 169 and 675: rank r warms up with 2 (p - r - 1) + (v - 1) p forwards, 22 on the
// first of 8 stages with two chunks; one more follows before its first backward.
TEST(ScheduleCases, C17_WarmUpOfInterleavedStages) {
  const Schedule schedule = interleaved(8, 2, 32);
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    const std::vector<Slot>& slots = schedule.slots[static_cast<std::size_t>(rank)];
    const auto backward = std::find_if(slots.begin(), slots.end(),
                                       [](const Slot& slot) { return slot.kind == SlotKind::kBackward; });
    EXPECT_EQ(backward - slots.begin(), 2 * (8 - rank - 1) + 8 + 1) << "rank " << rank;
  }
}

// Reference values of the published zero-bubble schedulers for p = 8, v = 2, m = 64: 8 + 7/2 on the first
// stage and ((2-1) 8 + 1) / 2 on the last.
TEST(PeakInFlight, InterleavedMatchesThePublishedScheduler) {
  const Schedule schedule = interleaved(8, 2, 64);
  EXPECT_EQ(peak_in_flight(schedule, 0), 11.5);
  EXPECT_EQ(peak_in_flight(schedule, 7), 4.5);
}

TEST(PeakInFlight, InterleavedWithOneGroupHoldsEveryMicroBatch) {
  const Schedule schedule = interleaved(4, 3, 4);
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(peak_in_flight(schedule, stage), 4.0);
}

/// Micro-batches whose backward, or whose weight gradients, have not run yet, at most.
std::int64_t most_unfinished(const Schedule& schedule, std::size_t stage, SlotKind end) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Slot& slot : schedule.slots[stage]) {
    now += slot.kind == SlotKind::kForward ? 1 : slot.kind == end ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

// Qi et al. 2023, table 2, stages counted from 0: p - i micro-batches and weight gradients of i more with H1,
// 2p - 2i - 1 and 2i with H2; p and 2p - 1 together on every stage.
TEST(PeakInFlight, ZeroBubbleHoldsAsMuchOnEveryStage) {
  for (const std::int64_t p : {1, 2, 4, 8}) {
    const Schedule h1 = zero_bubble_h1(p, 4 * p);
    const Schedule h2 = zero_bubble_h2(p, 4 * p);
    for (std::int64_t stage = 0; stage < p; ++stage) {
      const auto index = static_cast<std::size_t>(stage);
      EXPECT_EQ(most_unfinished(h1, index, SlotKind::kBackward), p - stage);
      EXPECT_EQ(most_unfinished(h1, index, SlotKind::kWeight), p);
      EXPECT_EQ(most_unfinished(h2, index, SlotKind::kBackward), 2 * (p - stage) - 1);
      EXPECT_EQ(most_unfinished(h2, index, SlotKind::kWeight), 2 * p - 1);
    }
  }
}

TEST(PeakInFlight, WeightSlotsDoNotCount) {
  const Schedule schedule = written(1, 2, {"F0 B0 F1 B1 W0 W1"});
  EXPECT_EQ(peak_in_flight(schedule, 0), 1.0);
}

}  // namespace
}  // namespace trainsim::schedule
