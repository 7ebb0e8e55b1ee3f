// SPDX-License-Identifier: Apache-2.0
#include "sim/report/groups.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace trainsim::report {
namespace {

using program::GroupTransfers;
using program::LinkTraffic;
using program::Parties;
using program::TrafficKind;

/// Reduce-scatters of a stage's 16 ranks: 1 GB that takes 1 s alone.
GroupTransfers data_of(std::int64_t stage, Seconds busy, Seconds exposed) {
  GroupTransfers group;
  group.kind = TrafficKind::kData;
  group.of = {"data", {stage}};
  group.size = 16;
  group.nodes = 2;
  group.ranks = 16;
  group.op = "reduce_scatter";
  group.calls = 4;
  group.tensor_bytes = 16e9 / 15;
  group.sent_bytes = 1e9;
  group.alone = 1;
  group.busy = busy;
  group.exposed = group.longest_exposed = exposed;
  group.limit = "nic 3 -> leaf 0";
  return group;
}

LinkTraffic link_of(const std::string& name, const std::vector<Parties>& users) {
  LinkTraffic link;
  link.name = name;
  link.bandwidth = 25e9;
  for (const Parties& user : users) link.users.push_back({TrafficKind::kData, user, 1e9});
  return link;
}

/// Four stages; the first has more to reduce, the third is delayed by 11 %.
Summary of_four_stages() {
  Summary summary;
  summary.plan.pipeline_parallel = 4;
  summary.traffic.groups = {data_of(0, 1, 0.25), data_of(1, 1, 0), data_of(2, 1.11, 1), data_of(3, 1, 0.5)};
  summary.traffic.groups[0].tensor_bytes *= 2;
  summary.traffic.links = {link_of("gpu 0 -> node switch 0", {{"data", {2}}}),
                           link_of("nic 3 -> leaf 0", {{"data", {2}}, {"pipeline", {1}}, {"pipeline", {2}}}),
                           link_of("nic 9 -> leaf 1", {{"data", {2}}, {"data", {3}}})};
  return summary;
}

TEST(Groups, ThatDoTheSameAreOneRow) {
  const std::vector<GroupTransfers> rows = alike_groups(of_four_stages());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].of.stages, std::vector<std::int64_t>{0});
  EXPECT_EQ(rows[1].of.stages, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(rows[1].ranks, 48);
  EXPECT_NEAR(rows[1].busy, (1 + 1.11 + 1) / 3, 1e-12);
  EXPECT_NEAR(rows[1].exposed, 0.5, 1e-12);
  EXPECT_EQ(rows[1].longest_exposed, 1);
  EXPECT_NEAR(rows[1].hidden(), 3.11 / 3 - 0.5, 1e-12);
  EXPECT_NEAR(rows[1].bus_bandwidth(), 1e9 / (3.11 / 3), 1e-3);
}

TEST(Groups, AreNamedByTheirStages) {
  plan::ParallelPlan plan;
  EXPECT_EQ(parties_text({"expert_data", {0}}, plan), "expert data");
  plan.pipeline_parallel = 8;
  EXPECT_EQ(parties_text({"data", {3}}, plan), "data, stage 3");
  EXPECT_EQ(parties_text({"data", {1, 2, 3, 5}}, plan), "data, stages 1-3, 5");
  EXPECT_EQ(parties_text({"tensor", {0, 1, 2, 3, 4, 5, 6, 7}}, plan), "tensor, all stages");
  plan.pipeline_parallel = 2;
  EXPECT_EQ(parties_text({"embedding", {0, 1}}, plan), "embedding, stages 0-1");
}

TEST(Groups, SayWhoSharesTheLinkOfTheOneThatIsDelayedMost) {
  // Not the busiest link, which nobody else uses.
  EXPECT_EQ(sharing_text(of_four_stages()),
            "The data-parallel rings of stage 2 (reduce scatter) share 'nic 3 -> leaf 0' with pipeline "
            "transfers of stages 1-2: +11.0 % against being alone.");
  Summary alone = of_four_stages();
  alone.traffic.links.resize(1);
  EXPECT_EQ(sharing_text(alone),
            "The data-parallel rings of stage 2 (reduce scatter) share 'gpu 0 -> node switch 0' with each "
            "other: +11.0 % against being alone.");
  alone.traffic.groups[2].busy = 1.005;
  EXPECT_EQ(sharing_text(alone), "");
}

TEST(Groups, AreLimitedByALinkOrByLatency) {
  Summary summary = of_four_stages();
  EXPECT_EQ(limit_text(summary, TrafficKind::kData),
            "; the slowest link on its way is 'nic 3 -> leaf 0' (25.00 GB/s)");
  // Stage 2 waits most.
  summary.traffic.groups[2].limit = "latency";
  EXPECT_EQ(limit_text(summary, TrafficKind::kData), "; most of it is latency");
  EXPECT_EQ(limit_text(summary, TrafficKind::kTensor), "");
}

}  // namespace
}  // namespace trainsim::report
