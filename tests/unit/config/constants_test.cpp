// SPDX-License-Identifier: Apache-2.0
#include "sim/config/constants.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "sim/config/experiment.hpp"
#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

std::vector<Constant> taken(Value& root, std::string* problems = nullptr) {
  Report report;
  std::vector<Constant> constants = take_constants(root, "cluster", report);
  if (problems != nullptr) {
    *problems = report.text();
  } else {
    EXPECT_TRUE(report.empty()) << report.text();
  }
  return constants;
}

std::string problems_of(const std::string& text) {
  Value root = parsed(text);
  std::string problems;
  taken(root, &problems);
  return problems.substr(0, problems.find('\n'));
}

TEST(Constants, LeaveTheirValueInTheirPlace) {
  Value root = parsed(
      "gpu:\n  rate: {value: 0.80, grade: fitted, range: [0.7, 0.9]}\n  plain: 3\n"
      "start: {value: 33.4 us, grade: guess, range: [18 us, 40 us]}\nknown: {value: 5 GB/s, grade: data "
      "sheet}\n");
  const std::vector<Constant> constants = taken(root);
  ASSERT_EQ(constants.size(), 3U);
  EXPECT_EQ(constants[0].path, "cluster.gpu.rate");
  EXPECT_EQ(constants[0].grade, Grade::kFitted);
  EXPECT_EQ(constants[0].low, 0.7);
  EXPECT_EQ(constants[0].nominal, 0.8);
  EXPECT_EQ(constants[0].high, 0.9);
  EXPECT_EQ(constants[1].unit, "us");
  EXPECT_EQ(constants[1].text(20.5), "20.5 us");
  EXPECT_TRUE(constants[1].varies());
  EXPECT_FALSE(constants[2].varies());
  EXPECT_EQ(root.find("gpu")->value.find("rate")->value.text, "0.80");
  EXPECT_EQ(root.find("start")->value.text, "33.4 us");
}

TEST(Constants, ThatAreCountsStayWhole) {
  Value root = parsed("n: {value: 24, grade: measured, range: [16, 24]}\n");
  EXPECT_EQ(taken(root)[0].text(19.7), "20");
}

TEST(Constants, ProblemsNameTheirPlace) {
  EXPECT_EQ(problems_of("a: {value: 1, grade: sure}\n"),
            "test.yaml:1:22: error: cluster.a.grade: unknown word sure; legal here: data sheet, measured, "
            "fitted or "
            "guess");
  EXPECT_EQ(problems_of("a: {value: 1}\n"),
            "test.yaml:1:4: error: cluster.a.grade: missing; it needs data sheet, measured, fitted or guess, "
            "for how "
            "the value is known");
  EXPECT_EQ(problems_of("a: {value: 1 us, grade: guess, range: [2 us, 3 us]}\n"),
            "test.yaml:1:39: error: cluster.a.range: does not hold the value 1 us");
  const std::string expects =
      "needs two values with the unit of the constant, such as [0.7, 0.9] or [5 us, 9 us]";
  EXPECT_EQ(problems_of("a: {value: 1 us, grade: guess, range: [1 us, 3 ms]}\n"),
            "test.yaml:1:39: error: cluster.a.range: " + expects);
  EXPECT_EQ(problems_of("a: {value: 1, grade: guess, range: 3}\n"),
            "test.yaml:1:36: error: cluster.a.range: " + expects);
  EXPECT_EQ(problems_of("a: {value: 1, grade: guess, of: 3}\n"),
            "test.yaml:1:29: error: cluster.a.of: unknown key; legal here: value, grade or range");
}

TEST(Constants, OfAPresetCanBeOverridden) {
  const auto known = [](const std::vector<std::string>& overrides) {
    const Experiment experiment = load("gpt175b", overrides);
    return std::any_of(
        experiment.constants.begin(), experiment.constants.end(),
        [](const Constant& constant) { return constant.path == "cluster.gpu.matmul_efficiency"; });
  };
  EXPECT_TRUE(known({}));
  EXPECT_FALSE(known({"cluster.gpu.matmul_efficiency=0.5"}));
  EXPECT_EQ(load("gpt175b", {"cluster.gpu.matmul_efficiency=0.5"}).cluster.gpu.matmul_efficiency, 0.5);
}

/// Every constant that is no figure of a data sheet says how well it is known.
TEST(Constants, OfAllClustersHaveGrades) {
  for (const Preset& preset : list_presets("clusters")) {
    const std::vector<std::string> overrides = {"cluster=" + preset.name, "gpus=8", "plan.precision=fp16"};
    const Experiment experiment = load("small-dp8", overrides);
    std::vector<std::string> paths;
    for (const Constant& constant : experiment.constants) paths.push_back(constant.path);
    for (const char* path :
         {"cluster.gpu.memory_efficiency", "cluster.gpu.random_efficiency", "cluster.gpu.matmul_efficiency",
          "cluster.gpu.matmul_half_k", "cluster.gpu.communication_multiprocessors",
          "cluster.gpu.attention_efficiency_forward", "cluster.gpu.attention_efficiency_backward",
          "cluster.gpu.kernel_overhead", "cluster.gpu.launch_interval_eager", "cluster.intra_node.efficiency",
          "cluster.intra_node.latency", "cluster.intra_node.ll_bandwidth", "cluster.nic.efficiency",
          "cluster.nic.latency", "cluster.pcie.efficiency", "cluster.pcie.latency",
          "cluster.fabric.switch_latency", "cluster.collective_latency", "cluster.point_to_point_latency"}) {
      EXPECT_NE(std::find(paths.begin(), paths.end(), path), paths.end()) << preset.name << ": " << path;
    }
  }
}

}  // namespace
}  // namespace trainsim::config
