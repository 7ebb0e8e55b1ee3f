// SPDX-License-Identifier: Apache-2.0
#include "sim/report/summary.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/report/network.hpp"
#include "sim/report/notes.hpp"
#include "tests/unit/report/outcome.hpp"

namespace trainsim::report {
namespace {

using plan::ParallelPlan;
using program::Cause;
using program::MemoryCategory;
using tests::gpt;
using tests::kTight;
using tests::Outcome;
using tests::simulated;
using tests::split_plan;
using tests::varied_plans;
using tests::written_by_hand;

TEST(SummaryDefinitions, BubbleRatioIsIdleTimeOfThePipelinesWindow) {
  // From the first slot at 0 to the last at 10: 1 - (6 + 8) / (2 * 10).
  const Summary summary = written_by_hand().summary();
  EXPECT_NEAR(summary.bubble_ratio, 0.3, kTight);
  EXPECT_NEAR(summary.ranks[0].bubble, 4, kTight);
  EXPECT_NEAR(summary.ranks[1].bubble, 2, kTight);
  EXPECT_EQ(summary.ranks[0].busy, 6);
}

TEST(SummaryDefinitions, BubbleRatioOfAStageDividesByTheLongestSpan) {
  // Both stages span 8 s: 1 - (6 + 8) / (2 * 8).
  EXPECT_NEAR(written_by_hand().summary().bubble_ratio_stage, 0.125, kTight);
}

TEST(SummaryDefinitions, BubbleRatioInTheoryIsTheClosedForm) {
  // (p - 1) / (m + p - 1) = 1 / 5; three of eleven for the worked example of four stages and eight
  // micro-batches.
  EXPECT_NEAR(written_by_hand().summary().bubble_ratio_theory.value(), 0.2, kTight);
  const Outcome outcome = simulated(gpt({4}), split_plan({1, 4, 1, 1}, 8));
  EXPECT_NEAR(outcome.summary().bubble_ratio_theory.value(), 3.0 / 11.0, kTight);
}

TEST(SummaryDefinitions, BreakdownIsTheMeanOverRanks) {
  const Summary summary = written_by_hand().summary();
  const auto of = [&](Cause cause) { return summary.breakdown[static_cast<std::size_t>(cause)]; };
  EXPECT_NEAR(of(Cause::kForward), 2.5, kTight);
  EXPECT_NEAR(of(Cause::kBackward), 4.5, kTight);
  EXPECT_NEAR(of(Cause::kBubble), 2, kTight);
  EXPECT_NEAR(of(Cause::kOptimizer), 1, kTight);
  EXPECT_NEAR(of(Cause::kImbalance), 2, kTight);
}

TEST(SummaryDefinitions, MeansWeighARankByHowManyItRepresents) {
  Outcome outcome = written_by_hand();
  outcome.job.ranks[0].represents = 1;
  outcome.job.ranks[1].represents = 3;
  const Summary summary = outcome.summary();
  EXPECT_NEAR(summary.breakdown[static_cast<std::size_t>(Cause::kForward)], (2 + 3 * 3) / 4.0, kTight);
  EXPECT_NEAR(summary.bubble_ratio, 1 - (6 + 3 * 8) / 40.0, kTight);
  EXPECT_NEAR(summary.hardware_flops, 100e12 + 3 * 50e12, 1);
}

TEST(SummaryDefinitions, RatesFollowFromTheStepTime) {
  const Summary summary = written_by_hand().summary();
  EXPECT_NEAR(summary.samples_per_second, 8.0 / 12, kTight);
  EXPECT_NEAR(summary.tokens_per_second, 8.0 * 256 / 12, 1e-9);
  EXPECT_NEAR(summary.tokens_per_second_per_gpu, 8.0 * 256 / 12 / 4, 1e-9);
}

TEST(SummaryDefinitions, UtilisationIsFlopsOverPeakOfAllGpus) {
  const Summary summary = written_by_hand().summary();
  // L = 2, h = 512, s = 256, V = 8192: 72 * 8 * 2 * 256 * 512^2 (1 + 256 / 3072 + 8192 / 12,288) = 135.29e9.
  const double model_flops = 72.0 * 8 * 2 * 256 * 512 * 512 * (1 + 1.0 / 12 + 2.0 / 3);
  EXPECT_NEAR(summary.model_flops, model_flops, 1e-6);
  EXPECT_NEAR(summary.mfu, model_flops / (12 * 4 * 10e12), kTight);
  EXPECT_NEAR(summary.model_tflops_per_gpu, model_flops / 12 / 4 / 1e12, kTight);
  // Two ranks of each stage: 2 * (100 + 50) TFLOP in 12 s on four GPUs of 10 TFLOP/s.
  EXPECT_NEAR(summary.hardware_flops, 300e12, 1);
  EXPECT_NEAR(summary.hardware_tflops_per_gpu, 6.25, kTight);
  EXPECT_NEAR(summary.hfu, 0.625, kTight);
}

TEST(SummaryDefinitions, ScalingEfficiencyComparesWithOneGpu) {
  // 24 s on one GPU, 4 * 12 s on four.
  EXPECT_NEAR(written_by_hand().summary().scaling_efficiency, 0.5, kTight);
}

TEST(SummaryDefinitions, MemoryIsTheFullestRanks) {
  Outcome outcome = written_by_hand();
  outcome.plan.memory_reserve = Bytes{50} << 30;
  const Summary summary = outcome.summary();
  EXPECT_EQ(summary.peak_memory, Bytes{30} << 30);
  EXPECT_EQ(fullest_rank(summary).rank, 2);
  EXPECT_EQ(fullest_rank(summary).peak_at, "backward of micro-batch 3, chunk 1");
  EXPECT_EQ(summary.memory_headroom, 0);  // 80 - 50 - 30 GiB
  EXPECT_TRUE(summary.fits);
  outcome.plan.memory_reserve += 1;
  EXPECT_EQ(outcome.summary().memory_headroom, -1);
  EXPECT_FALSE(outcome.summary().fits);
}

TEST(SummaryDefinitions, RetriesAreTheFullestRanksAndNamedIfItFits) {
  Outcome outcome = written_by_hand();
  EXPECT_EQ(outcome.summary().allocator_retries, 2);
  EXPECT_EQ(retries_text(outcome.summary()), "; gives cached memory back 2 times a step");
  outcome.plan.memory_reserve = Bytes{51} << 30;
  EXPECT_EQ(retries_text(outcome.summary()), "");
}

/// Known to 3 % of the peak: of 100, 97 leave enough (2.91 of 3) and 98 do not.
TEST(SummaryDefinitions, VerdictsSayWhy) {
  constexpr Bytes kGiB = Bytes{1} << 30;
  EXPECT_EQ(judge_memory(97 * kGiB, 97 * kGiB, 100 * kGiB), Verdict::kFits);
  EXPECT_EQ(verdict_reason(97 * kGiB, 97 * kGiB, 100 * kGiB), "3.00 GiB left");
  EXPECT_EQ(judge_memory(98 * kGiB, 98 * kGiB, 100 * kGiB), Verdict::kBorderline);
  EXPECT_EQ(verdict_reason(98 * kGiB, 98 * kGiB, 100 * kGiB),
            "2.00 GiB left, less than the 3 % of the peak to which it is known");
  EXPECT_EQ(judge_memory(90 * kGiB, 104 * kGiB, 100 * kGiB), Verdict::kBorderline);
  EXPECT_EQ(verdict_reason(90 * kGiB, 104 * kGiB, 100 * kGiB),
            "10.0 GiB left, but the allocator's fragments need 4.00 GiB more (memory.expandable_segments may "
            "help)");
  EXPECT_EQ(judge_memory(101 * kGiB, 101 * kGiB, 100 * kGiB), Verdict::kDoesNotFit);
  EXPECT_EQ(verdict_reason(101 * kGiB, 101 * kGiB, 100 * kGiB), "1.00 GiB too much");
}

TEST(SummaryOfARun, HasABreakdownThatAddsUpToTheStep) {
  for (const ParallelPlan& plan : varied_plans()) {
    const Summary summary = simulated(gpt({8}), plan).summary();
    ASSERT_GT(summary.step_time, 0);
    const auto total = [](const auto& causes) { return std::accumulate(causes.begin(), causes.end(), 0.0); };
    EXPECT_NEAR(total(summary.breakdown), summary.step_time, 1e-9);
    for (const Seconds seconds : summary.breakdown) EXPECT_GE(seconds, -1e-12);
    for (const RankSummary& rank : summary.ranks) EXPECT_NEAR(total(rank.by_cause), summary.step_time, 1e-9);
  }
}

TEST(SummaryOfARun, HasRanksThatRepresentTheWorld) {
  for (const ParallelPlan& plan : varied_plans()) {
    const Summary summary = simulated(gpt({8}), plan).summary();
    std::int64_t represented = 0;
    std::int64_t layers = 0;
    for (const RankSummary& rank : summary.ranks) {
      represented += rank.represents;
      layers += rank.layers * rank.represents;
    }
    EXPECT_EQ(represented, plan.gpus);
    EXPECT_EQ(layers, 8 * plan.tensor_parallel * plan.data_parallel);
  }
}

TEST(SummaryOfARun, CountsMoreHardwareThanModelFlopsOnlyWithRecomputation) {
  ParallelPlan plan = split_plan({2, 2, 1, 1}, 4);
  const Summary plain = simulated(gpt({8}), plan).summary();
  EXPECT_NEAR(plain.hfu, plain.mfu, 1e-9 * plain.mfu);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  const Summary full = simulated(gpt({8}), plan).summary();
  // 96 (1 + s/6h + V/16Lh) against 72 (1 + s/6h + V/12hL): 96 (1 + 1/12 + 1/8) / 72 (1 + 1/12 + 1/6).
  EXPECT_NEAR(full.hfu / full.mfu, 96.0 * 29 / 24 / (72.0 * 30 / 24), 1e-9);
}

TEST(SummaryOfARun, ScalesPerfectlyOnOneGpuWithoutRecomputation) {
  for (const auto attention : {model::Attention::kStandard, model::Attention::kFlash}) {
    model::ModelSpec model = gpt({8});
    model.attention = attention;
    EXPECT_NEAR(simulated(model, split_plan({}, 4)).summary().scaling_efficiency, 1.0, 1e-6);
    model.tie_word_embeddings = false;
    EXPECT_NEAR(simulated(model, split_plan({}, 1, 3)).summary().scaling_efficiency, 1.0, 1e-6);
  }
}

TEST(SummaryOfARun, ScalesWorseWithRecomputationAndWithMoreGpus) {
  ParallelPlan plan = split_plan({}, 4);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  // A quarter of the work is done again; the head and the optimizer are not.
  const double recomputing = simulated(gpt({8}), plan).summary().scaling_efficiency;
  EXPECT_LT(recomputing, 0.95);
  EXPECT_GT(recomputing, 0.75);
  for (const ParallelPlan& split : {split_plan({4}, 4), split_plan({1, 4}, 4), split_plan({1, 1, 1, 4}, 4)}) {
    EXPECT_LT(simulated(gpt({8}), split).summary().scaling_efficiency, 1.0);
  }
}

TEST(SummaryOfARun, ComparesWithOneGpuThatRecomputesAndSplitsNothing) {
  ParallelPlan plan = split_plan({}, 4);
  const Seconds alone = simulated(gpt({8}), plan).single_gpu_time;
  for (const auto granularity : {plan::RecomputeGranularity::kSelective, plan::RecomputeGranularity::kFull}) {
    plan.recompute.granularity = granularity;
    EXPECT_DOUBLE_EQ(simulated(gpt({8}), plan).single_gpu_time, alone);
  }
  plan = split_plan({2, 2, 1, 1}, 4);
  plan.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(simulated(gpt({8}), plan).single_gpu_time, alone);
}

/// Of the layers, forward is a third: running it again makes four thirds.
TEST(SummaryOfARun, CountsRecomputationUnderAProfileToo) {
  ParallelPlan plan = split_plan({}, 4);
  plan.profile = {{3e-3, 5e-3}};
  const Summary plain = simulated(gpt({8}), plan).summary();
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  const Summary full = simulated(gpt({8}), plan).summary();
  EXPECT_NEAR(full.hardware_flops / plain.hardware_flops, 4.0 / 3.0, 1e-12);
  EXPECT_NEAR(full.step_time, plain.step_time, 1e-12);
}

/// Four stages: (p-1)/(3m+p-1) is 3/27 with 8 micro-batches and 3/51 with 16; with 3 there is no closed form.
TEST(SummaryOfARun, SaysWhatIsToBeExpectedOfZeroBubbleSchedules) {
  const auto notes = [](std::int64_t micro_batches) {
    ParallelPlan plan = split_plan({1, 4, 1, 1}, micro_batches);
    plan.schedule = plan::ScheduleKind::kZeroBubbleH1;
    plan.profile = {{0.010, 0.020, 0.010}};
    std::string text;
    for (const std::string& note : explain(simulated(gpt({8}), plan).summary())) text += note + "\n";
    return text;
  };
  EXPECT_NE(notes(8).find("Twice the micro-batches would bring the closed-form bubble from 11.1 % to 5.9 %."),
            std::string::npos)
      << notes(8);
  EXPECT_NE(notes(3).find("zb-h1 has no closed form with as few as 3 micro-batches on 4 stages."),
            std::string::npos)
      << notes(3);
}

TEST(SummaryOfARun, ScalesPerfectlyOnOneGpuWithAProfile) {
  ParallelPlan plan = split_plan({}, 4);
  plan.profile = {{3e-3, 5e-3}};
  EXPECT_NEAR(simulated(gpt({8}), plan).summary().scaling_efficiency, 1.0, 1e-6);
}

/// Four micro-batches of 8 ms and an optimizer of 7 ms; on one GPU two tensor-parallel ranks' work takes
/// twice as long.
TEST(SummaryOfARun, TakesTheTimeOfAMeasuredOptimizer) {
  ParallelPlan plan = split_plan({}, 4);
  plan.profile = {{3e-3, 5e-3, 0, 7e-3}};
  const Summary one = simulated(gpt({8}), plan).summary();
  EXPECT_NEAR(one.step_time, 0.039, 1e-9);
  EXPECT_NEAR(one.scaling_efficiency, 1.0, 1e-9);
  plan = split_plan({2}, 4);
  plan.profile = {{3e-3, 5e-3, 0, 7e-3}};
  const Summary two = simulated(gpt({8}), plan).summary();
  // Norms, which both ranks have, are a thousandth of the parameters.
  EXPECT_NEAR(two.scaling_efficiency, 0.039 / two.step_time, 2e-3);
}

/// As long as it is modelled anyhow, it changes nothing, whoever shares the optimizer's state or has other
/// experts; an optimizer on the hosts' CPUs is none that was measured.
TEST(SummaryOfARun, AMeasuredOptimizerOfAPlanIsScaledAsTheModelledOne) {
  ParallelPlan plan = split_plan({1, 2, 1, 2}, 4);
  plan.sharding = plan::Sharding::kZero1;
  plan.profile = {{3e-3, 5e-3}};
  const auto optimizer_of = [](const Summary& summary) {
    return summary.breakdown[static_cast<std::size_t>(program::Cause::kOptimizer)];
  };
  const Summary modelled = simulated(gpt({8}), plan).summary();
  plan.profile.front().optimizer = optimizer_of(modelled);
  const Summary measured = simulated(gpt({8}), plan).summary();
  EXPECT_NEAR(measured.step_time, modelled.step_time, 2e-2 * modelled.step_time);
  EXPECT_NEAR(measured.scaling_efficiency, modelled.scaling_efficiency, 2e-2);
  plan.offload.optimizer = plan::OffloadTarget::kCpu;
  const Summary on_host = simulated(gpt({8}), plan).summary();
  plan.profile = {{3e-3, 5e-3}};
  EXPECT_EQ(on_host.scaling_efficiency, simulated(gpt({8}), plan).summary().scaling_efficiency);
}

TEST(SummaryTraffic, UtilizationAndUsersOfLinks) {
  Outcome outcome = written_by_hand();
  Summary summary = outcome.summary();
  // 36 GB at 4 GB/s are 9 of 12 s.
  const program::LinkTraffic link{"wire", 4e9, {9e9, 27e9, 0, 0, 0}};
  EXPECT_NEAR(utilization(summary, link), 0.75, kTight);
  EXPECT_EQ(users_of(link), "data 75.0 %, tensor 25.0 %");
  EXPECT_EQ(users_of({"wire", 4e9, {0, 0, 0, 0, 1}}), "pipeline");
  EXPECT_EQ(users_of({"wire", 4e9, {0, 0, 0, 1, 0}}), "expert");
}

TEST(SummaryTraffic, ContentionIsWhatSharingCosts) {
  Outcome outcome = written_by_hand();
  EXPECT_FALSE(outcome.summary().contention);
  EXPECT_EQ(contention_note(outcome.summary()), "");
  outcome.uncontended = 9;
  Summary summary = outcome.summary();
  EXPECT_NEAR(summary.contention.value(), 3, kTight);
  summary.traffic.links = {{"lonely", 1e9, {0, 9e9, 0, 0, 0}}, {"shared", 1e9, {0, 3e9, 0, 0, 3e9}}};
  EXPECT_EQ(
      contention_note(summary),
      "Transfers that share links cost 25.0 % of the step: with each alone it would take 9.000 s. The "
      "busiest "
      "that several kinds share is 'shared', busy for 50.0 % of the step (data 50.0 %, pipeline 50.0 %).");
}

}  // namespace
}  // namespace trainsim::report
