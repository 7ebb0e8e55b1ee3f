// SPDX-License-Identifier: Apache-2.0
#include "sim/training/batch_stages.hpp"

#include <tuple>

#include <gtest/gtest.h>

#include "sim/training/check.hpp"

namespace trainsim::training {
namespace {

TrainingSpec of_tokens(std::int64_t tokens) {
  TrainingSpec spec;
  spec.tokens = tokens;
  return spec;
}

TrainingSpec of_steps(std::int64_t steps) {
  TrainingSpec spec;
  spec.steps = steps;
  return spec;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Batches and steps of a run.
Pairs stages_of(const TrainingSpec& spec, const Batch& full) {
  Pairs pairs;
  for (const BatchStage& stage : batch_stages(spec, full)) pairs.emplace_back(stage.batch, stage.steps);
  return pairs;
}

TEST(BatchStages, CountsTheStepsOfTokens) {
  // 10,000 tokens are 100 sequences of 100, in steps of 8: 12.5.
  EXPECT_EQ(stages_of(of_tokens(10'000), {8, 100}), (Pairs{{8, 13}}));
  // One token more needs a sequence more, but no step.
  EXPECT_EQ(stages_of(of_tokens(10'001), {8, 100}), (Pairs{{8, 13}}));
  EXPECT_EQ(stages_of(of_tokens(10'401), {8, 100}), (Pairs{{8, 14}}));
  EXPECT_EQ(stages_of(of_tokens(1), {8, 100}), (Pairs{{8, 1}}));
  // GPT-3 with batches of 1536 x 2048: 300e9 / 3,145,728 = 95,367.4.
  EXPECT_EQ(stages_of(of_tokens(300'000'000'000), {1536, 2048}), (Pairs{{1536, 95'368}}));
}

TEST(BatchStages, TakesStepsAsTheyAre) {
  EXPECT_EQ(stages_of(of_steps(7), {8, 100}), (Pairs{{8, 7}}));
}

TEST(BatchStages, GrowsAfterEqualSharesOfTheSamples) {
  TrainingSpec spec = of_steps(100);
  spec.ramp = BatchRamp{2, 2, 90};
  // Three increments of 30 samples each, then 8. Of 2: 15 steps, to 30. Of 4: 8 steps, to 62, as after 7 (58)
  // the second share is not done. Of 6: 5 steps, to 92. 100 - 28 = 72 are left.
  EXPECT_EQ(stages_of(spec, {8, 100}), (Pairs{{2, 15}, {4, 8}, {6, 5}, {8, 72}}));
}

TEST(BatchStages, LeavesOutSizesThatNoStepHas) {
  TrainingSpec spec = of_steps(20);
  spec.ramp = BatchRamp{4, 4, 9};
  // Shares of 3 samples: the first step of 4 is beyond the first, one of 8 beyond all.
  EXPECT_EQ(stages_of(spec, {16, 100}), (Pairs{{4, 1}, {8, 1}, {16, 18}}));
}

TEST(BatchStages, RoundsSharesThatAreNotWholeUp) {
  TrainingSpec spec = of_steps(30);
  spec.ramp = BatchRamp{1, 1, 10};
  // Three shares of 10 / 3: a step that begins after 4 samples is the first beyond 3.33, one after 7
  // beyond 6.67.
  EXPECT_EQ(stages_of(spec, {4, 100}), (Pairs{{1, 4}, {2, 2}, {3, 1}, {4, 23}}));
}

TEST(BatchStages, EndsWithinARampIfTheRunDoes) {
  TrainingSpec spec = of_tokens(4'000);
  spec.ramp = BatchRamp{2, 2, 90};
  // 40 sequences: 15 steps of 2 and 2.5 of 4.
  EXPECT_EQ(stages_of(spec, {8, 100}), (Pairs{{2, 15}, {4, 3}}));
}

/// Megatron-LM's example of GPT-3 175B: 16 16 5859375 and 146,484,375 samples.
TEST(BatchStages, FollowsMegatronsExample) {
  TrainingSpec spec = of_tokens(std::int64_t{146'484'375} * 2048);
  spec.ramp = BatchRamp{16, 16, 5'859'375};
  const std::vector<BatchStage> stages = batch_stages(spec, {1536, 2048});
  ASSERT_EQ(stages.size(), 96U);
  // A share is 5,859,375 / 95 = 61,677.6 samples: 3,854.9 steps of 16, and (123,355.3 - 61,680) / 32 =
  // 1,927.4.
  EXPECT_EQ(stages[0].steps, 3855);
  EXPECT_EQ(stages[1].steps, 1928);
  EXPECT_EQ(stages[95].batch, 1536);
  // The ramp ends within a batch of 1520 beyond 5,859,375; the rest is 140,625,000 / 1536 = 91,552.7 or a
  // step less.
  EXPECT_NEAR(static_cast<double>(stages[95].steps), 91'552.7, 1.5);
  EXPECT_GE(total_samples(stages), 146'484'375);
  EXPECT_LT(total_samples(stages), 146'484'375 + 1536);
}

std::string problem_of(const TrainingSpec& spec, std::int64_t unit = 4) {
  RunFacts facts{{64, 1024}, unit, "micro_batch_size 1 x data_parallel 4"};
  std::string text;
  for (const Problem& problem : check(spec, facts)) text += problem.field + ": " + problem.message + "\n";
  return text;
}

TEST(RunCheck, AcceptsWhatAgrees) {
  TrainingSpec spec = of_steps(1000);
  spec.ramp = BatchRamp{16, 8, 5000};
  spec.checkpoint = CheckpointSpec{{}, 1000, {}, {}, 1.0};
  EXPECT_EQ(problem_of(spec), "");
}

TEST(RunCheck, NamesLegalRamps) {
  TrainingSpec spec = of_steps(1000);
  spec.ramp = BatchRamp{14, 6, 5000};
  EXPECT_EQ(problem_of(spec),
            "run.rampup_batch_size.start: 14 is not a multiple of micro_batch_size 1 x data_parallel 4 = 4; "
            "nearest "
            "legal: 12 or 16\n"
            "run.rampup_batch_size.increment: 6 is not a multiple of micro_batch_size 1 x data_parallel 4 = "
            "4; nearest "
            "legal: 4 or 8\n");
  spec.ramp = BatchRamp{16, 20, 5000};
  EXPECT_EQ(problem_of(spec),
            "run.rampup_batch_size.increment: 20 does not divide the 48 from 16 to plan.global_batch_size "
            "64; legal "
            "here: 4, 8, 12, 16, 24, 48\n");
}

TEST(RunCheck, FindsRampsThatLeadNowhere) {
  TrainingSpec spec = of_steps(1000);
  spec.ramp = BatchRamp{64, 4, 5000};
  EXPECT_EQ(problem_of(spec),
            "run.rampup_batch_size.start: 64 is not below plan.global_batch_size 64, to which the batch is "
            "to grow; "
            "lower it, or remove the ramp\n");
  // 100 steps of 16 are 1600 samples, all below a quarter of 7000.
  spec = of_steps(100);
  spec.ramp = BatchRamp{16, 16, 7000};
  EXPECT_EQ(
      problem_of(spec),
      "run.rampup_batch_size.samples: the run ends after 1600 sequences, before the batch has its full size; "
      "write less, or lengthen the run\n");
}

TEST(RunCheck, FindsAllThatIsWrongAtOnce) {
  TrainingSpec spec = of_steps(100);
  spec.ramp = BatchRamp{14, 4, 500};
  spec.checkpoint = CheckpointSpec{{}, 101, {}, {}, 1.0};
  EXPECT_EQ(problem_of(spec),
            "run.rampup_batch_size.start: 14 is not a multiple of micro_batch_size 1 x data_parallel 4 = 4; "
            "nearest "
            "legal: 12 or 16\n"
            "run.checkpoint.interval: 101 steps are more than the 100 of the run, so that nothing is saved "
            "before its "
            "end; write fewer\n");
}

TEST(RunCheck, FindsIntervalsBeyondTheRun) {
  TrainingSpec spec = of_steps(100);
  spec.checkpoint = CheckpointSpec{{}, 101, {}, {}, 1.0};
  EXPECT_EQ(problem_of(spec),
            "run.checkpoint.interval: 101 steps are more than the 100 of the run, so that nothing is saved "
            "before its "
            "end; write fewer\n");
}

TEST(RunCheck, BoundsWhatIsCountedAndSimulated) {
  EXPECT_EQ(check(of_steps(1'000'000'000), {{1'000'000'000'000, 1}, 1, ""}).front().message,
            "1000000000 steps of 1000000000000 sequences are more than can be counted; write fewer");
  TrainingSpec spec = of_steps(1'000'000);
  spec.ramp = BatchRamp{1, 1, 100'000};
  EXPECT_EQ(check(spec, {{2002, 1}, 1, ""}).front().message,
            "makes 2001 batch sizes from 1 to plan.global_batch_size 2002, each of which is simulated; at "
            "most 1000; "
            "legal here: 3, 23, 29, 69, 87, 667, 2001");
}

}  // namespace
}  // namespace trainsim::training
