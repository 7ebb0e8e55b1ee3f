// SPDX-License-Identifier: Apache-2.0
#include "sim/search/placements.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::search {
namespace {

using Texts = std::vector<std::string>;

Texts meanings(const std::vector<PlacementChoice>& choices) {
  Texts texts;
  for (const PlacementChoice& choice : choices) texts.push_back(choice.meaning);
  return texts;
}

std::map<std::string, std::string> by_meaning(const std::vector<PlacementChoice>& choices) {
  std::map<std::string, std::string> overrides;
  for (const PlacementChoice& choice : choices) overrides[choice.meaning] = choice.overrides.at(0);
  return overrides;
}

TEST(Placements, OrdersDifferByAxesThatHaveRanks) {
  EXPECT_EQ(
      meanings(other_orders(tests::small_plan(16, 2, 2, 1))),
      (Texts{"order tp-pp-dp", "order dp-tp-pp", "order dp-pp-tp", "order pp-tp-dp", "order pp-dp-tp"}));
  // Without stages the two others have one other order.
  EXPECT_EQ(meanings(other_orders(tests::small_plan(16, 2, 1, 1))), (Texts{"order dp-tp-pp"}));
  EXPECT_TRUE(other_orders(tests::small_plan(16, 1, 1, 1)).empty());
  plan::ParallelPlan own = tests::small_plan(16, 2, 2, 1);
  own.order = plan::kTensorPipelineData;
  EXPECT_EQ(meanings(other_orders(own)).front(), "order tp-dp-pp");
}

/// Eight nodes of eight GPUs, four to a leaf with half of the bandwidth upwards.
hardware::ClusterSpec oversubscribed() {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.fabric.nodes_per_leaf = 4;
  cluster.fabric.oversubscription = 2;
  return cluster;
}

TEST(Placements, NodesAreThoseOfTheBlocks) {
  const auto choices = by_meaning(other_nodes(tests::small_plan(64, 8, 2, 1), oversubscribed()));
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices.at("half of each leaf"), "plan.placement=[0-1, 4-5, 8-9, 12-13]");
  EXPECT_EQ(choices.at("one node of each leaf"), "plan.placement=[0, 4, 8, 12, 16, 20, 24, 28]");
  EXPECT_EQ(choices.at("the first nodes, alternating between leaves"),
            "plan.placement=[0, 4, 1, 5, 2, 6, 3, 7]");
}

TEST(Placements, AJobWithinALeafAlternatesBetweenNone) {
  const auto choices = by_meaning(other_nodes(tests::small_plan(32, 8, 2, 1), oversubscribed()));
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices.at("half of each leaf"), "plan.placement=[0-1, 4-5]");
}

TEST(Placements, AScatteredJobMayTakeTheFirstNodes) {
  plan::ParallelPlan plan = tests::small_plan(32, 8, 2, 1);
  plan.nodes = {0, 4, 8, 12};
  EXPECT_EQ(by_meaning(other_nodes(plan, oversubscribed())).at("the first nodes"), "plan.placement=[0-3]");
  EXPECT_FALSE(by_meaning(other_nodes(plan, oversubscribed())).contains("one node of each leaf"));
}

TEST(Placements, MakeNoDifferenceWhereNothingCanHoldTrafficUp) {
  const plan::ParallelPlan plan = tests::small_plan(64, 8, 2, 1);
  EXPECT_TRUE(other_nodes(plan, tests::round_cluster()).empty());
  EXPECT_NE(why_no_other_nodes(plan, tests::round_cluster()), "");
  EXPECT_EQ(why_no_other_nodes(plan, oversubscribed()), "");
  EXPECT_NE(why_no_other_nodes(tests::small_plan(8, 8, 1, 1), oversubscribed()), "");
}

}  // namespace
}  // namespace trainsim::search
