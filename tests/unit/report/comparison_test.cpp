// SPDX-License-Identifier: Apache-2.0
// Comparisons and sensitivities as tables, and what a result's JSON gives back.
#include "sim/report/comparison.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/report/sensitivity.hpp"
#include "sim/report/writers.hpp"
#include "tests/unit/report/outcome.hpp"

namespace trainsim::report {
namespace {

/// A run whose input has these values.
ComparedRun run_with(std::vector<std::pair<std::string, std::string>> values) {
  ComparedRun run;
  run.values = std::move(values);
  return run;
}

TEST(Comparison, InputsAreShownWhereTheyDiffer) {
  const std::vector<InputDifference> rows =
      input_differences({run_with({{"model.num_layers", "2"}, {"gpus", "8"}, {"plan.recompute", "none"}}),
                         run_with({{"model.num_layers", "4"}, {"gpus", "8"}, {"plan.layout", "[1, 3]"}})});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].key, "plan.recompute");
  EXPECT_EQ(rows[0].values, (std::vector<std::string>{"none", ""}));
  EXPECT_EQ(rows[1].key, "plan.layout");
  EXPECT_EQ(rows[1].values, (std::vector<std::string>{"", "[1, 3]"}));
  EXPECT_EQ(rows[2].key, "model.num_layers");
}

/// 21 draws in which the second run takes 0, 1, … 20 % more than the first; the result is 10 % more. Their 5
/// and 95 % quantiles are the second and the last but one.
TEST(Comparison, IntervalsOfDifferencesAreOfRatios) {
  std::vector<double> first;
  std::vector<double> second;
  for (int percent = 0; percent <= 20; ++percent) {
    // What both have in common cancels.
    const double common = 1.0 + percent;
    first.push_back(common);
    second.push_back(common * (1.0 + 0.01 * percent) / 1.1);
  }
  const DifferenceInterval interval = difference_interval(0.1, first, second, 7);
  EXPECT_EQ(interval.samples, 21U);
  EXPECT_EQ(interval.seed, 7U);
  EXPECT_NEAR(interval.low, 0.01, 1e-12);
  EXPECT_NEAR(interval.high, 0.19, 1e-12);
  EXPECT_EQ(interval.same_way, 20U);
  // 0.93 / 1.1 of the time, times 1.19 and 1.20 in the last two draws, is more than 1.
  EXPECT_EQ(difference_interval(-0.07, first, second, 7).same_way, 19U);
}

TEST(Comparison, RunsHaveLetters) {
  EXPECT_EQ(run_letter(0), "A");
  EXPECT_EQ(run_letter(25), "Z");
  EXPECT_EQ(run_letter(26), "A2");
}

TEST(Comparison, FiguresSurviveJson) {
  for (const plan::ParallelPlan& plan : tests::varied_plans()) {
    const Summary summary = tests::simulated(tests::gpt({4}), plan).summary();
    const Figures direct = figures_of(summary, "A");
    const Figures read = figures_of(to_json(summary), "A");
    EXPECT_EQ(read.model, direct.model);
    EXPECT_EQ(read.gpus, direct.gpus);
    EXPECT_EQ(read.tokens, direct.tokens);
    EXPECT_EQ(read.step_time, direct.step_time);
    EXPECT_EQ(read.breakdown, direct.breakdown);
    EXPECT_EQ(read.tokens_per_second, direct.tokens_per_second);
    EXPECT_EQ(read.mfu, direct.mfu);
    EXPECT_EQ(read.hfu, direct.hfu);
    EXPECT_EQ(read.bubble_ratio, direct.bubble_ratio);
    EXPECT_EQ(read.scaling_efficiency, direct.scaling_efficiency);
    EXPECT_EQ(read.verdict, direct.verdict);
    EXPECT_EQ(read.peak_memory, direct.peak_memory);
    EXPECT_EQ(read.memory_at_peak, direct.memory_at_peak);
  }
}

/// A step of 11 s of which one thing, 10 % better, takes 1 s, another half of that and a third nothing.
Summary with_sensitivity() {
  Summary summary = tests::written_by_hand().summary();
  summary.step_time = 11;
  summary.sensitivity = Sensitivity{{{"gpu.memory", "memory capacity", "gpu.memory=+10%", false, 11},
                                     {"op.matmul.speedup", "matmul", "op.matmul.speedup=+10%", true, 10.5},
                                     {"gpu.peak_flops", "peak FLOP/s", "gpu.peak_flops=+10%", false, 10},
                                     {"network.nic", "NIC bandwidth", "network.nic=+10%", false, 10.5}}};
  sort_by_gain(*summary.sensitivity);
  return summary;
}

TEST(Sensitivity, RowsAreSortedByGainAndThenByName) {
  const Summary summary = with_sensitivity();
  std::vector<std::string> names;
  for (const SensitivityRow& row : summary.sensitivity->rows) names.push_back(row.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"gpu.peak_flops", "network.nic", "op.matmul.speedup", "gpu.memory"}));
}

TEST(Sensitivity, ElasticityIsOneForWhatBindsAloneAndZeroForWhatDoesNot) {
  const Summary summary = with_sensitivity();
  // 11 s / 1.1 = 10 s.
  EXPECT_NEAR(summary.sensitivity->rows[0].elasticity(11), 1.0, 1e-12);
  EXPECT_NEAR(summary.sensitivity->rows[1].elasticity(11), std::log(22.0 / 21.0) / std::log(1.1), 1e-12);
  EXPECT_EQ(summary.sensitivity->rows[3].elasticity(11), 0.0);
}

TEST(Sensitivity, SentencesNameWhatBinds) {
  EXPECT_EQ(bound_by(with_sensitivity()),
            (std::vector<std::string>{
                "Bound by peak FLOP/s (elasticity 1.0): 10 % better would take 9.1 % off the step; next NIC "
                "bandwidth "
                "4.5 %.",
                "Of the operations matmul weighs most: 10 % faster would take 4.5 % off the step."}));
  Summary summary = with_sensitivity();
  for (SensitivityRow& row : summary.sensitivity->rows) row.step_time = 11;
  EXPECT_EQ(bound_by(summary),
            std::vector<std::string>{"Bound by no single part of the hardware: nothing that is 10 % better "
                                     "would take 0.20 % off the step."});
}

TEST(Sensitivity, TablesShowGainAndElasticity) {
  const std::string csv = sensitivity_csv(with_sensitivity());
  EXPECT_NE(csv.find("gpu.memory,memory capacity,gpu.memory=+10%,11,0,0,0,fits\n"), std::string::npos) << csv;
  const nlohmann::json json = nlohmann::json::parse(to_json(with_sensitivity()));
  EXPECT_EQ(json["sensitivity"]["rows"][0]["gain_s"], 1.0);
  EXPECT_EQ(sensitivity_text(tests::written_by_hand().summary()), "");
  EXPECT_NE(sensitivity_text(with_sensitivity()).find("peak FLOP/s"), std::string::npos);
}

}  // namespace
}  // namespace trainsim::report
