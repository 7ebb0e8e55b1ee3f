// SPDX-License-Identifier: Apache-2.0
#include "sim/config/overrides.hpp"

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

/// A configuration after overrides, which must be well-formed.
Value overridden(const std::string& text, const std::vector<std::string>& overrides) {
  Value config = parsed(text);
  Report report;
  apply_overrides(config, overrides, report);
  EXPECT_TRUE(report.empty()) << report.text();
  return config;
}

std::string error_of(const std::string& text, const std::string& override_text) {
  Value config = parsed(text);
  Report report;
  apply_overrides(config, {override_text}, report);
  return report.text();
}

const Value& at(const Value& config, const std::vector<std::string>& path) {
  const Value* value = &config;
  for (const std::string& key : path) value = &value->find(key)->value;
  return *value;
}

TEST(Overrides, ReplaceAddAndCreate) {
  const Value config =
      overridden("gpus: 8\nplan: {a: 1}\n", {"gpus=16", "plan.b=2", "software.launch=eager"});
  EXPECT_EQ(at(config, {"gpus"}).text, "16");
  EXPECT_EQ(at(config, {"plan", "a"}).text, "1");
  EXPECT_EQ(at(config, {"plan", "b"}).text, "2");
  EXPECT_EQ(at(config, {"software", "launch"}).text, "eager");
}

TEST(Overrides, TakeTheLastOfTwo) {
  EXPECT_EQ(at(overridden("gpus: 8\n", {"gpus=16", "gpus=32"}), {"gpus"}).text, "32");
}

TEST(Overrides, TakeListsAndMappingsInFlowStyle) {
  const Value config =
      overridden("plan: {}\n", {"plan.pipeline_layout=[2, 3]", "plan.recompute={granularity: full}"});
  EXPECT_EQ(at(config, {"plan", "pipeline_layout"}).items.size(), 2u);
  EXPECT_EQ(at(config, {"plan", "recompute", "granularity"}).text, "full");
}

TEST(Overrides, KeepEverythingBehindTheFirstEqualsSign) {
  EXPECT_EQ(at(overridden("a: b\n", {"a=x=y"}), {"a"}).text, "x=y");
}

TEST(Overrides, ChangeWhatANameStandsFor) {
  const Value config =
      overridden("model: big\ncluster: box\nplan: {recompute: full}\n",
                 {"model.num_layers=4", "cluster.nic_bandwidth=100 Gb/s", "plan.recompute.layers=2"});
  EXPECT_EQ(at(config, {"model", "extends"}).text, "big");
  EXPECT_EQ(config.find("model")->value.find("extends")->at.column, 8);
  EXPECT_EQ(at(config, {"model", "num_layers"}).text, "4");
  EXPECT_EQ(at(config, {"cluster", "extends"}).text, "box");
  EXPECT_EQ(at(config, {"cluster", "nic", "bandwidth"}).text, "100 Gb/s");
  EXPECT_EQ(at(config, {"plan", "recompute", "granularity"}).text, "full");
  EXPECT_EQ(at(config, {"plan", "recompute", "layers"}).text, "2");
}

TEST(Overrides, HavePositionsInTheirOwnText) {
  const Value config = overridden("plan: {}\n", {"plan.tensor_parallel=3"});
  const Entry& entry = *config.find("plan")->value.find("tensor_parallel");
  EXPECT_EQ(entry.at.source->name(), "--set plan.tensor_parallel=3");
  EXPECT_EQ(entry.at.column, 6);
  EXPECT_EQ(entry.value.at.column, 22);
}

TEST(Overrides, CannotReachIntoValues) {
  EXPECT_EQ(error_of("gpus: 8\n", "gpus.x=1"),
            "--set gpus.x=1:1:1: error: gpus: is 8 and has no keys; set it as a whole (--set gpus=...)\n"
            "    1 | gpus.x=1\n      | ^");
  EXPECT_NE(error_of("plan: {pipeline_layout: [1, 2]}\n", "plan.pipeline_layout.0=3")
                .find("is a list and has no keys"),
            std::string::npos);
}

TEST(Overrides, NeedKeyAndEqualsSign) {
  EXPECT_NE(error_of("a: 1\n", "a").find("an override needs a '='"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n", "=1").find("a key is missing here"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n", "a.=1").find(":1:3: error: a key is missing here"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n", "a=[1").find(":1:3: error: a list in brackets is not closed"),
            std::string::npos);
}

}  // namespace
}  // namespace trainsim::config
