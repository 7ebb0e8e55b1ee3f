// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/group_traffic.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/executor.hpp"
#include "sim/engine/link_curves.hpp"
#include "sim/engine/traffic.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::engine {
namespace {

using program::Cause;
using program::CollectiveOp;
using program::GroupKind;
using program::GroupTransfers;
using program::Instruction;
using program::Opcode;
using program::Stream;
using program::TrafficKind;

Instruction collective(double bytes, Cause cause) {
  Instruction instruction;
  instruction.op = Opcode::kCollective;
  instruction.group = GroupKind::kData;
  instruction.collective = CollectiveOp::kReduceScatter;
  instruction.cause = cause;
  instruction.amount = bytes;
  return instruction;
}

/// The data stream's collectives run from 2 to 6 s, after waiting for members until 3 s, and from 6 to 9 s;
/// compute waits from 1 to 4 s and from 8 to 9 s.
TEST(GroupTraffic, WhatComputeWaitsForIsExposed) {
  const Instruction first = collective(100, Cause::kDataCommunication);
  const Instruction second = collective(50, Cause::kDataCommunication);
  program::RankTimeline rank;
  program::RankRecorder recorder(rank);
  recorder.collective({Stream::kData, 0, first.cause, &first}, 2, 3, 6);
  recorder.wait({Stream::kCompute, 0, Cause::kDataCommunication}, 1, 4);
  recorder.collective({Stream::kData, 1, second.cause, &second}, 6, 6, 9);
  recorder.wait({Stream::kCompute, 1, Cause::kDataCommunication}, 8, 9);
  ASSERT_EQ(rank.collectives.size(), 2U);
  // Of the 3 s from 3 to 6 s the first wait sees one, and of those from 6 to 9 s the second sees one.
  EXPECT_DOUBLE_EQ(rank.collectives[0].busy, 3);
  EXPECT_DOUBLE_EQ(rank.collectives[0].exposed, 1);
  EXPECT_DOUBLE_EQ(rank.collectives[1].busy, 3);
  EXPECT_DOUBLE_EQ(rank.collectives[1].exposed, 1);
  // 1 s before the collective began and 1 s in it, less the second in which its stream waited for members.
  EXPECT_DOUBLE_EQ(rank.by_cause[static_cast<std::size_t>(Cause::kDataCommunication)], 3);
  EXPECT_DOUBLE_EQ(rank.by_cause[static_cast<std::size_t>(Cause::kImbalance)], 1);
}

TEST(GroupTraffic, CollectivesOfTheComputeStreamHideNothing) {
  const Instruction call = collective(100, Cause::kOptimizer);
  program::RankTimeline rank;
  program::RankRecorder recorder(rank);
  for (const Seconds at : {0.0, 10.0})
    recorder.collective({Stream::kCompute, 0, call.cause, &call}, at, at + 1, at + 3);
  ASSERT_EQ(rank.collectives.size(), 1U);
  EXPECT_EQ(rank.collectives[0].calls, 2);
  EXPECT_DOUBLE_EQ(rank.collectives[0].busy, 4);
  EXPECT_DOUBLE_EQ(rank.collectives[0].exposed, 4);
}

/// A job and its step without contention.
struct Step {
  program::Job job;
  program::Timeline timeline;
};

Step step_of(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan, bool fold = true) {
  Step step{tests::make_job(tests::small_gpt(), cluster, plan, {fold}), {}};
  ExecutorOptions options;
  options.record_spans = true;
  step.timeline = make_ideal_executor(options)->run(step.job);
  return step;
}

TEST(GroupTraffic, OfARingMeetsItsFormula) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.forced_algorithm = Algorithm::kRing;
  const Step step = step_of(cluster, tests::small_plan(16, 1, 1, 1));
  const std::vector<GroupTransfers> groups = group_traffic(step.job, step.timeline);
  ASSERT_EQ(groups.size(), 1U);
  const GroupTransfers& data = groups.front();
  EXPECT_EQ(data.of.name, "data");
  EXPECT_EQ(data.of.stages, std::vector<std::int64_t>{0});
  EXPECT_EQ(data.op, "all_reduce");
  EXPECT_EQ(data.size, 16);
  EXPECT_EQ(data.nodes, 2);
  EXPECT_EQ(data.ranks, 16);
  EXPECT_NEAR(data.tensor_bytes, count_traffic(step.job).transfers.front().tensor_bytes, 1);
  // A member of a ring sends 2 (P-1)/P of the tensor.
  EXPECT_NEAR(data.sent_bytes, 2.0 * 15 / 16 * data.tensor_bytes, 1);
  // Nothing else is on the network of the ideal executor.
  EXPECT_NEAR(data.busy, data.alone, 1e-12);
  EXPECT_NEAR(data.bus_bandwidth(), data.sent_bytes / data.busy, 1);
  EXPECT_NEAR(data.hidden() + data.exposed, data.busy, 1e-12);
  // Eight rings: a GPU passes 7/8 of its data on over 100 GB/s, and each NIC carries 1/8 over 10 GB/s, which
  // takes longer.
  EXPECT_TRUE(data.limit.starts_with("nic ") || data.limit.starts_with("leaf ")) << data.limit;
}

/// What rows say of all ranks together.
std::map<std::string, GroupTransfers> by_name(const std::vector<GroupTransfers>& groups) {
  std::map<std::string, GroupTransfers> rows;
  for (const GroupTransfers& group : groups)
    rows[group.of.name + " " + std::to_string(group.of.stages.front()) + " " + group.op] = group;
  return rows;
}

TEST(GroupTraffic, OfFoldedRanksIsThatOfAll) {
  const plan::ParallelPlan plan = tests::small_plan(16, 2, 2, 1);
  const Step folded = step_of(tests::round_cluster(), plan, true);
  const Step whole = step_of(tests::round_cluster(), plan, false);
  const auto some = by_name(group_traffic(folded.job, folded.timeline));
  const auto all = by_name(group_traffic(whole.job, whole.timeline));
  ASSERT_EQ(some.size(), all.size());
  for (const auto& [name, group] : some) {
    const GroupTransfers& other = all.at(name);
    EXPECT_EQ(group.ranks, other.ranks) << name;
    // Eight on each stage.
    EXPECT_EQ(group.ranks, 8 * static_cast<std::int64_t>(group.of.stages.size())) << name;
    EXPECT_NEAR(group.calls, other.calls, 1e-9) << name;
    EXPECT_NEAR(group.sent_bytes, other.sent_bytes, 1e-3) << name;
    EXPECT_NEAR(group.busy, other.busy, 1e-12) << name;
    EXPECT_NEAR(group.exposed, other.exposed, 1e-12) << name;
  }
}

/// Tensor-parallel communication that compute waits for is that of some collective.
TEST(GroupTraffic, ExposedPartsAddUpToTheBreakdown) {
  for (const std::int64_t chunks : {1, 2}) {
    const Step step = step_of(tests::round_cluster(), tests::small_plan(16, 2, 2, chunks));
    double exposed = 0;
    for (const GroupTransfers& group : group_traffic(step.job, step.timeline)) {
      if (group.kind == TrafficKind::kTensor) exposed += static_cast<double>(group.ranks) * group.exposed;
      EXPECT_LE(group.exposed, group.longest_exposed * (1 + 1e-12));
    }
    double booked = 0;
    for (std::size_t rank = 0; rank < step.job.ranks.size(); ++rank) {
      booked += static_cast<double>(step.job.ranks[rank].represents) *
                step.timeline.ranks[rank].by_cause[static_cast<std::size_t>(Cause::kTensorCommunication)];
    }
    EXPECT_GT(booked, 0);
    EXPECT_NEAR(exposed, booked, 1e-9 * booked);
  }
}

TEST(GroupTraffic, UsersOfALinkSendAllThatCrossesIt) {
  const Step step = step_of(tests::round_cluster(), tests::small_plan(32, 2, 4, 1));
  bool shared = false;
  for (const program::LinkTraffic& link : count_traffic(step.job).links) {
    double sum = 0;
    for (const program::LinkUser& user : link.users) sum += user.bytes;
    EXPECT_NEAR(sum, link.total(), 1e-9 * sum) << link.name;
    const auto sends = [](const program::LinkUser& user) { return user.by.name == "pipeline"; };
    shared = shared || (link.users.size() > 1 && std::any_of(link.users.begin(), link.users.end(), sends));
  }
  EXPECT_TRUE(shared);
}

/// What the curve of a link says over all parts of the step is what crosses it.
TEST(LinkCurves, HoldAllBytes) {
  const Step step = step_of(tests::round_cluster(), tests::small_plan(16, 2, 2, 1));
  const program::Traffic traffic = count_traffic(step.job);
  std::vector<std::string> names;
  for (const program::LinkTraffic& link : traffic.links) names.push_back(link.name);
  constexpr std::size_t kParts = 7;
  const std::vector<program::LinkCurve> curves = link_curves(step.job, step.timeline, names, kParts);
  ASSERT_EQ(curves.size(), names.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (std::size_t kind = 0; kind < program::kTrafficKinds; ++kind) {
      double seconds = 0;
      for (const double share : curves[i].busy[kind]) seconds += share * step.timeline.step_time / kParts;
      const double bytes = traffic.links[i].bytes[kind];
      EXPECT_NEAR(seconds * traffic.links[i].bandwidth, bytes, 1e-6 * bytes + 1e-6) << names[i];
    }
  }
}

}  // namespace
}  // namespace trainsim::engine
