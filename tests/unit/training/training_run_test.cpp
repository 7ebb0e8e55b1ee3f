// SPDX-License-Identifier: Apache-2.0
#include "sim/training/training_run.hpp"

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "sim/training/duration_text.hpp"

namespace trainsim::training {
namespace {

constexpr Seconds kHour = 3600;
constexpr Seconds kDay = 86400;

/// A run of steps of one batch size.
std::vector<RunStage> steps_of(std::int64_t steps, Seconds step_time, double utilization = 1.0) {
  return {{{8, steps}, {step_time, utilization}}};
}

Setting setting(std::int64_t gpus) {
  Setting setting;
  setting.machine = {gpus, gpus / 8, 100, 400};
  setting.sequence_length = 1000;
  setting.state = 6'000'000'000;
  return setting;
}

TrainingSpec priced(double per_gpu_hour) {
  TrainingSpec spec;
  spec.price = Price{per_gpu_hour, "USD"};
  return spec;
}

TEST(TrainingRun, AddsUpStepsHoursAndMoney) {
  // 86,400 steps of 2 s are two days; 16 GPUs for 48 hours are 768 GPU-hours.
  const TrainingRun run = training_run(priced(2.5), steps_of(86'400, 2.0), setting(16));
  EXPECT_EQ(run.steps, 86'400);
  EXPECT_EQ(run.samples, 8 * 86'400);
  EXPECT_DOUBLE_EQ(run.tokens, 8.0 * 86'400 * 1000);
  EXPECT_DOUBLE_EQ(run.days(), 2);
  EXPECT_DOUBLE_EQ(run.gpu_hours, 768);
  ASSERT_TRUE(run.cost);
  EXPECT_DOUBLE_EQ(run.cost->amount, 1920);
  EXPECT_DOUBLE_EQ(run.goodput(), 1);
  EXPECT_FALSE(run.checkpoint);
  EXPECT_FALSE(run.failures);
}

TEST(TrainingRun, SumsOverBatchSizes) {
  const std::vector<RunStage> stages = {{{4, 100}, {1.5, 0.5}}, {{8, 200}, {2.0, 0.8}}};
  const TrainingRun run = training_run({}, stages, setting(8));
  EXPECT_EQ(run.steps, 300);
  EXPECT_EQ(run.samples, 2000);
  EXPECT_DOUBLE_EQ(run.wall.work, 550);
  // (150 · 0.5 + 400 · 0.8) / 550
  EXPECT_NEAR(run.energy->utilization, 395.0 / 550.0, 1e-12);
}

TEST(TrainingRun, MakesEnergyOfWhatGpusDo) {
  // An hour at 100 + 300 · 0.8 = 340 W on each of 16, and 1000 W in each of two nodes, at a PUE of 1.5:
  // 1.5 · (5.44 + 2) kWh, at 200 g.
  TrainingSpec spec;
  spec.power = {1.5, 200, 1000};
  const TrainingRun run = training_run(spec, steps_of(1800, 2.0, 0.8), setting(16));
  ASSERT_TRUE(run.energy);
  EXPECT_NEAR(run.energy->gpu_power, 340, 1e-9);
  EXPECT_NEAR(run.energy->kilowatt_hours, 11.16, 1e-9);
  EXPECT_NEAR(run.energy->co2.value(), 2.232, 1e-9);
}

TEST(TrainingRun, LetsGpusWaitWhileTheyDoNotTrain) {
  // Two checkpoints of 900 s: half an hour at 100 W, after an hour at 400 W.
  TrainingSpec spec;
  spec.power = {1.0, {}, 0};
  spec.checkpoint = CheckpointSpec{{}, 900, {}, {}, 900};
  const TrainingRun run = training_run(spec, steps_of(1800, 2.0), setting(8));
  EXPECT_DOUBLE_EQ(run.wall.total(), 1.5 * kHour);
  EXPECT_NEAR(run.energy->kilowatt_hours, 8 * (0.4 + 0.05), 1e-9);
  EXPECT_FALSE(run.energy->co2);
}

TEST(TrainingRun, LosesTimeToStepsThatWritingSlows) {
  // 6 GB at 0.1 GB/s take 60 s, of which training stops for 10 s. In the other 50 s steps take 2.5 instead of
  // 2 s: 20 of them, which would take 40 s otherwise. The last of the four checkpoints is waited for.
  TrainingSpec spec;
  spec.checkpoint = CheckpointSpec{{}, 100, {}, 1e8, 10, true};
  Setting slowed = setting(8);
  slowed.writing_slowdown = 1.25;
  const TrainingRun run = training_run(spec, steps_of(400, 2.0), slowed);
  ASSERT_TRUE(run.checkpoint);
  EXPECT_NEAR(run.checkpoint->slowed, 10, 1e-9);
  EXPECT_NEAR(run.checkpoint->slow_step, 2.5, 1e-12);
  EXPECT_NEAR(run.checkpoint->timing.stall, 20, 1e-9);
  EXPECT_NEAR(run.wall.work, 800, 1e-9);
  EXPECT_NEAR(run.wall.checkpoints, 3 * 20 + 60, 1e-9);
  // Through NICs of its own it costs the stall alone.
  spec.checkpoint->through_compute = false;
  const TrainingRun usual = training_run(spec, steps_of(400, 2.0), setting(8));
  EXPECT_NEAR(usual.wall.checkpoints, 3 * 10 + 60, 1e-9);
  EXPECT_EQ(usual.checkpoint->slow_step, 0);
}

TEST(TrainingRun, KnowsNoEnergyWithoutPower) {
  Setting unknown = setting(8);
  unknown.machine.waiting_power = unknown.machine.computing_power = 0;
  EXPECT_FALSE(training_run({}, steps_of(10, 1), unknown).energy);
}

/// Llama (Touvron et al. 2023, arXiv 2302.13971), table 15: GPU-hours of A100-80GB counted at 400 W, a PUE
/// of 1.1 and 0.385 kg/kWh give these MWh and tons of CO2.
TEST(TrainingRun, ReproducesTheEnergyOfLlama) {
  struct Row {
    double gpu_hours, megawatt_hours, tons;
  };
  for (const Row& row :
       {Row{82'432, 36, 14}, Row{135'168, 59, 23}, Row{530'432, 233, 90}, Row{1'022'362, 449, 173}}) {
    TrainingSpec spec;
    spec.power = {1.1, 385, 0};
    const TrainingRun run =
        training_run(spec, steps_of(1000, row.gpu_hours * kHour / 2048 / 1000), setting(2048));
    EXPECT_NEAR(run.gpu_hours, row.gpu_hours, 1e-6);
    EXPECT_NEAR(run.energy->kilowatt_hours / 1000, row.megawatt_hours, 1.0);
    EXPECT_NEAR(*run.energy->co2 / 1000, row.tons, 0.6);
  }
}

/// The node that drew 8.4 kW with eight H100 of 700 W: Latif et al. 2025.
TEST(TrainingRun, TakesTheUsualOverheadOfANode) {
  EXPECT_DOUBLE_EQ(usual_node_overhead(8, 700), 8400 - 8 * 700);
}

TrainingSpec failing(Seconds gpu_mtbf, Seconds restart, CheckpointSpec checkpoint) {
  TrainingSpec spec;
  spec.failures = FailureSpec{gpu_mtbf, restart, 2000, 1};
  spec.checkpoint = std::move(checkpoint);
  return spec;
}

TEST(TrainingRun, WritesStateAtItsBandwidthIfNothingElseIsSaid) {
  // 6 GB at 0.2 GB/s; another size; a stall that hides the rest.
  const auto timing = [](const CheckpointSpec& checkpoint) {
    return training_run(failing(1e9, 10, checkpoint), steps_of(1000, 10), setting(8)).checkpoint->timing;
  };
  const Checkpoints state = timing({{}, 100, {}, 2e8, {}});
  EXPECT_DOUBLE_EQ(state.stall, 30);
  EXPECT_DOUBLE_EQ(state.write, 30);
  EXPECT_DOUBLE_EQ(timing({{}, 100, 3'000'000'000, 2e8, {}}).stall, 15);
  const Checkpoints hidden = timing({{}, 100, {}, 2e8, 4});
  EXPECT_DOUBLE_EQ(hidden.stall, 4);
  EXPECT_DOUBLE_EQ(hidden.write, 30);
  const Checkpoints given = timing({{}, 100, {}, {}, 4});
  EXPECT_DOUBLE_EQ(given.stall, 4);
  EXPECT_DOUBLE_EQ(given.write, 4);
}

TEST(TrainingRun, ChoosesDalysInterval) {
  // A job MTBF of 24 h (8 GPUs) and stalls of 300 s: 7001.4 s, 700 steps of 10 s.
  const TrainingRun run =
      training_run(failing(8 * 24 * kHour, 600, {{}, {}, {}, {}, 300}), steps_of(180'000, 10), setting(8));
  ASSERT_TRUE(run.failures);
  EXPECT_DOUBLE_EQ(run.failures->hazard.mtbf, 24 * kHour);
  EXPECT_TRUE(run.checkpoint->chosen);
  EXPECT_EQ(run.checkpoint->timing.interval, 700);
  EXPECT_DOUBLE_EQ(run.failures->closed_form->young_interval, 7200);
  EXPECT_NEAR(run.failures->closed_form->daly_interval, 7001.4, 0.1);
  // M e^(R/M) (e^(7300/M) - 1) = 7670.3 s for each of 257 segments, and 1318.9 s for the last one of 1000 s
  // of steps: 1,972,598 s for 1,800,000 s.
  EXPECT_NEAR(1 / run.failures->closed_form->goodput, 1.095888, 1e-5);
  EXPECT_DOUBLE_EQ(run.failures->closed_form->goodput_at_daly, run.failures->closed_form->goodput);
  // The spread of one run is below 10 %; of the mean of 2000 below 0.25 %, so that 1 % is four standard
  // errors.
  EXPECT_NEAR(run.goodput() / run.failures->closed_form->goodput, 1.0, 0.01);
  EXPECT_LT(run.goodput_in(run.failures->wall_p90), run.goodput());
  EXPECT_GT(run.goodput_in(run.failures->wall_p10), run.goodput());
  EXPECT_LT(run.failures->wall_p10, run.wall.total());
  EXPECT_GT(run.failures->wall_p90, run.wall.total());
  EXPECT_NEAR(run.goodput(), 500 * kHour / run.wall.total(), 1e-12);
}

TEST(TrainingRun, RoundsIntervalsToWholeSteps) {
  const auto interval = [](Seconds seconds) {
    return training_run(failing(1e9, 10, {seconds, {}, {}, {}, 1}), steps_of(1000, 10), setting(8))
        .checkpoint->timing.interval;
  };
  EXPECT_EQ(interval(1), 1);
  EXPECT_EQ(interval(104), 10);
  EXPECT_EQ(interval(106), 11);
  EXPECT_EQ(interval(1e6), 1000);
}

TEST(TrainingRun, KnowsNoClosedFormForHiddenWriting) {
  const TrainingRun run =
      training_run(failing(1e7, 10, {{}, 100, {}, 2e8, 4}), steps_of(1000, 10), setting(8));
  EXPECT_FALSE(run.failures->closed_form);
}

/// 6 GB at 20 MB/s are written in 300 s, of which training stops for 1 s: 299 s, or 30 steps of 10 s, are
/// left, in which no other checkpoint can begin. To first order the interval that loses least is still that
/// of the stall: how much longer the last checkpoint is of no use does not depend on it.
TEST(TrainingRun, LetsWritingEndBeforeTheNextCheckpoint) {
  const auto chosen = [](Seconds mtbf, Seconds stall) {
    return training_run(failing(8 * mtbf, 10, {{}, {}, {}, 2e7, stall}), steps_of(10'000, 10), setting(8));
  };
  // √(2 · 1 s · 1 h) = 84.9 s is less.
  const TrainingRun bound = chosen(kHour, 1);
  EXPECT_EQ(bound.checkpoint->timing.interval, 30);
  EXPECT_TRUE(bound.checkpoint->bound_by_writing);
  EXPECT_EQ(bound.warnings, std::vector<std::string>());
  EXPECT_DOUBLE_EQ(bound.checkpoint->interval, 300);
  // √(2 · 1 s · 48 h) = 587.9 s is more; Daly's is 0.7 s shorter.
  const TrainingRun best = chosen(48 * kHour, 1);
  EXPECT_EQ(best.checkpoint->timing.interval, 59);
  EXPECT_FALSE(best.checkpoint->bound_by_writing);
  EXPECT_FALSE(best.failures->closed_form);
  // What stops nothing is done as often as it can be.
  EXPECT_EQ(chosen(kHour, 0).checkpoint->timing.interval, 30);
  // Training that waits for the whole of it can begin the next one at once: √(2 · 300 s · 1 h) (1 + √(1/24) /
  // 3 + 1/216) - 300 s = 1276.5 s.
  const TrainingRun waiting = chosen(kHour, 300);
  EXPECT_EQ(waiting.checkpoint->timing.interval, 128);
  EXPECT_FALSE(waiting.checkpoint->bound_by_writing);
}

TEST(TrainingRun, WarnsOfIntervalsAndWritingThatTakeTooLong) {
  TrainingSpec spec;
  spec.checkpoint = CheckpointSpec{2 * kDay, {}, {}, {}, 4};
  EXPECT_EQ(
      training_run(spec, steps_of(100, 10), setting(8)).warnings,
      (std::vector<std::string>{"run.checkpoint.interval: 2.00 days are longer than all steps together (16.7 "
                                "min): nothing is saved before the end"}));
  spec.checkpoint = CheckpointSpec{{}, 10, {}, 1e7, 4};
  EXPECT_EQ(
      training_run(spec, steps_of(100, 10), setting(8)).warnings,
      (std::vector<std::string>{"run.checkpoint: it takes 10.0 min to write a checkpoint, longer than to the "
                                "next one, so that training waits; lengthen interval or raise "
                                "write_bandwidth"}));
}

std::string error_of(const TrainingSpec& spec, const std::vector<RunStage>& stages) {
  try {
    training_run(spec, stages, setting(8));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TrainingRun, RefusesRunsThatDoNotEnd) {
  // A failure every 500 s and an hour between checkpoints: e^7.2 - 1 = 1338 times 500 s for each hour.
  EXPECT_EQ(
      error_of(failing(8 * 500, 60, {kHour, {}, {}, {}, 1}), steps_of(10'000, 10)),
      "trainsim: error: run.failures: with a failure of the job every 8.33 min, a restart of 60.0 s and 60.0 "
      "min "
      "from one checkpoint to the next the run would take more than 100 times as long as its steps; shorten "
      "checkpoint.interval, stall or restart_time, or use fewer GPUs");
  EXPECT_NE(error_of(failing(60, 1e6, {kHour, {}, {}, {}, 1}), steps_of(10'000, 10)), "");
}

TEST(TrainingRun, RefusesMoreFailuresThanCanBeSimulated) {
  TrainingSpec spec = failing(8 * 100, 1, {{}, 1, {}, {}, 0.1});
  spec.failures->runs = 1'000'000;
  // 1e7 s of work with a failure every 100 s.
  const std::string error = error_of(spec, steps_of(1'000'000, 10));
  // M e^(1/M) (e^(10.1/M) - 1) = 10.73447 s for each step: 107,344 failures, of which 1e8 are 931 runs.
  EXPECT_EQ(error,
            "trainsim: error: run.failures.runs: 1000000 runs with about 107344 failures each are too many "
            "to simulate; "
            "at most 931 here");
}

TEST(DurationText, ReadsWell) {
  EXPECT_EQ(duration_text(31.25), "31.2 s");
  EXPECT_EQ(duration_text(119), "119 s");
  EXPECT_EQ(duration_text(120), "2.00 min");
  EXPECT_EQ(duration_text(3.1 * kHour), "3.10 h");
  EXPECT_EQ(duration_text(47.9 * kHour), "47.9 h");
  EXPECT_EQ(duration_text(34.2 * kDay), "34.2 days");
  EXPECT_EQ(duration_text(1234.4 * kDay), "1234 days");
  EXPECT_EQ(duration_text(0), "0.00 s");
}

}  // namespace
}  // namespace trainsim::training
