// SPDX-License-Identifier: Apache-2.0
// The section `run`: what is read, and what is left open. What is wrong with it is in
// tests/bad_inputs/run_*.yaml.
#include <algorithm>

#include <gtest/gtest.h>

#include "sim/config/experiment.hpp"
#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

using training::TrainingSpec;

class RunSection : public InputFolder {
 protected:
  /// A run of 16 GPUs of unknown power with batches of 64.
  Experiment with(const std::string& run) const {
    return loaded(configuration("{global_batch_size: 64}", "gpus: 16\nrun: " + run + "\n"));
  }
  TrainingSpec spec_of(const std::string& run) const { return with(run).run.value(); }
};

std::string default_of(const Experiment& experiment, const std::string& field) {
  const auto found = std::find_if(experiment.defaults.begin(), experiment.defaults.end(),
                                  [&](const auto& each) { return each.first == field; });
  return found == experiment.defaults.end() ? "(none)" : found->second;
}

TEST_F(RunSection, IsNotThereUnlessAskedFor) {
  EXPECT_FALSE(loaded(configuration("{}")).run);
}

TEST_F(RunSection, ReadsLengthAndRamp) {
  const TrainingSpec tokens =
      spec_of("{tokens: 300B, rampup_batch_size: {start: 16, increment: 16, samples: 5_859_375}}");
  EXPECT_EQ(tokens.tokens, 300'000'000'000);
  EXPECT_FALSE(tokens.steps);
  EXPECT_EQ(tokens.ramp->start, 16);
  EXPECT_EQ(tokens.ramp->increment, 16);
  EXPECT_EQ(tokens.ramp->samples, 5'859'375);
  EXPECT_EQ(spec_of("{steps: 95k}").steps, 95'000);
}

TEST_F(RunSection, ReadsPricesWithTheirCurrency) {
  const TrainingSpec spec = spec_of("{steps: 10, price_per_gpu_hour: 2.50 EUR}");
  EXPECT_EQ(spec.price->per_gpu_hour, 2.5);
  EXPECT_EQ(spec.price->currency, "EUR");
  EXPECT_EQ(spec_of("{steps: 10, price_per_gpu_hour: '3  USD'}").price->per_gpu_hour, 3);
}

TEST_F(RunSection, ReadsFailuresAndCheckpoints) {
  const TrainingSpec spec = spec_of(
      "{steps: 1000, failures: {gpu_mtbf: 50_000 h, restart_time: 10 min, runs: 20, seed: 3},"
      " checkpoint: {interval: 45 min, size: 2 TB, write_bandwidth: 40 GB/s, stall: 3 s}}");
  EXPECT_DOUBLE_EQ(spec.failures->gpu_mtbf, 1.8e8);
  EXPECT_DOUBLE_EQ(spec.failures->restart_time, 600);
  EXPECT_EQ(spec.failures->runs, 20);
  EXPECT_EQ(spec.failures->seed, 3U);
  EXPECT_DOUBLE_EQ(spec.checkpoint->interval.value(), 2700);
  EXPECT_FALSE(spec.checkpoint->interval_steps);
  EXPECT_EQ(spec.checkpoint->size, 2'000'000'000'000);
  EXPECT_DOUBLE_EQ(spec.checkpoint->write_bandwidth.value(), 40e9);
  EXPECT_DOUBLE_EQ(spec.checkpoint->stall.value(), 3);
}

TEST_F(RunSection, ReadsIntervalsInSteps) {
  const auto checkpoint =
      spec_of("{steps: 1000, checkpoint: {interval: 1_000 steps, stall: 3 s}}").checkpoint;
  EXPECT_EQ(checkpoint->interval_steps, 1000);
  EXPECT_FALSE(checkpoint->interval);
  EXPECT_EQ(spec_of("{steps: 1000, checkpoint: {interval: 1 step, stall: 3 s}}").checkpoint->interval_steps,
            1);
}

TEST_F(RunSection, RecordsWhatIsLeftOpen) {
  const Experiment run =
      with("{steps: 1000, failures: {gpu_mtbf: 500 d, restart_time: 0 s}, checkpoint: {stall: 5 s}}");
  EXPECT_EQ(default_of(run, "run.failures.runs"), "1000");
  EXPECT_EQ(default_of(run, "run.failures.seed"), "1");
  EXPECT_EQ(default_of(run, "run.checkpoint.interval"), "auto");
  EXPECT_EQ(default_of(run, "run.power.pue"), "1.1");
  EXPECT_FALSE(run.run->checkpoint->interval);
  EXPECT_FALSE(run.run->checkpoint->interval_steps);
  EXPECT_FALSE(run.run->power.grid_intensity);
}

TEST_F(RunSection, LetsBandwidthBoundTheIntervalOfFreeCheckpoints) {
  const std::string failures = "{steps: 1000, failures: {gpu_mtbf: 500 d, restart_time: 0 s}, checkpoint: ";
  const TrainingSpec spec = spec_of(failures + "{stall: 0 s, write_bandwidth: 1 GB/s}}");
  EXPECT_EQ(spec.checkpoint->stall, 0.0);
  EXPECT_FALSE(spec.checkpoint->interval);
}

TEST_F(RunSection, TakesTheOverheadOfANodeFromItsGpus) {
  const std::string path =
      configuration("{}", "gpus: 16\nrun: {steps: 10, power: {grid_intensity: 60 kg/MWh}}\n");
  const std::vector<std::string> power = {"cluster.gpu.rated_power=700 W", "cluster.gpu.static_power=100 W"};
  const Experiment run = loaded(path, power);
  // Eight GPUs of a node, half of 700 W for each.
  EXPECT_DOUBLE_EQ(run.run->power.node_overhead, 2800);
  EXPECT_EQ(default_of(run, "run.power.node_overhead"), "2800 W");
  EXPECT_DOUBLE_EQ(run.run->power.grid_intensity.value(), 60);
  std::vector<std::string> given = power;
  given.emplace_back("run.power.node_overhead=1 kW");
  EXPECT_DOUBLE_EQ(loaded(path, given).run->power.node_overhead, 1000);
}

TEST_F(RunSection, IsDroppedForAStep) {
  // A ramp that starts above the batch, and power of a GPU that has none written.
  const std::string path =
      configuration("{global_batch_size: 64}",
                    "gpus: 16\nrun: {steps: 9, rampup_batch_size: {start: 640, increment: 16, samples: 90},"
                    " power: {pue: 1.2}}\n");
  EXPECT_NE(error_of(path), "");
  const Experiment step = load(path, {}, Scope::kStep);
  EXPECT_FALSE(step.run);
  const auto of_run = [](const auto& each) { return each.first.starts_with("run."); };
  EXPECT_TRUE(std::none_of(step.values.begin(), step.values.end(), of_run));
  EXPECT_TRUE(std::none_of(step.defaults.begin(), step.defaults.end(), of_run));
}

TEST_F(RunSection, IsReadForAStepToo) {
  const std::string path = configuration("{}", "gpus: 16\nrun: {steps: 9 W, ramp: 1}\n");
  const std::string whole = error_of(path);
  EXPECT_NE(whole.find("error: run.steps: "), std::string::npos) << whole;
  EXPECT_NE(whole.find("error: run.ramp: "), std::string::npos) << whole;
  EXPECT_EQ(error_of(path, {}, Scope::kStep), whole);
}

TEST_F(RunSection, CanBeMadeByOverrides) {
  EXPECT_EQ(loaded(configuration("{}"), {"run.tokens=1B"}).run->tokens, 1'000'000'000);
}

}  // namespace
}  // namespace trainsim::config
