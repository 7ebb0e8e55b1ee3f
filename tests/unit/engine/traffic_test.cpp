// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/traffic.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::engine {
namespace {

using program::LinkTraffic;
using program::Traffic;
using program::TrafficKind;
using program::Transfers;

double bytes_of(const LinkTraffic& link, TrafficKind kind) {
  return link.bytes[static_cast<std::size_t>(kind)];
}

/// 16 ranks on two nodes, tensor-parallel pairs, two stages of four replicas.
program::Job job_of(bool fold) {
  return tests::make_job(tests::small_gpt(), tests::round_cluster(), tests::small_plan(16, 2, 2, 1), {fold});
}

std::map<std::string, LinkTraffic> by_name(const Traffic& traffic) {
  std::map<std::string, LinkTraffic> links;
  for (const LinkTraffic& link : traffic.links) links[link.name] = link;
  return links;
}

TEST(Traffic, OfFoldedRanksIsThatOfTheRealLinks) {
  const auto folded = by_name(count_traffic(job_of(true)));
  const auto real = by_name(count_traffic(job_of(false)));
  ASSERT_FALSE(folded.empty());
  EXPECT_LT(folded.size(), real.size());
  for (const auto& [name, link] : folded) {
    ASSERT_TRUE(real.contains(name)) << name;
    for (int kind = 0; kind < program::kTrafficKinds; ++kind) {
      const auto k = static_cast<TrafficKind>(kind);
      EXPECT_NEAR(bytes_of(link, k), bytes_of(real.at(name), k), 1e-9 * (1 + bytes_of(link, k))) << name;
    }
  }
}

TEST(Traffic, TransfersAreCountedPerRank) {
  const auto count = [](bool fold) {
    std::map<std::string, Transfers> transfers;
    for (const Transfers& entry : count_traffic(job_of(fold)).transfers) {
      transfers[std::string(program::to_string(entry.kind)) + " " + entry.op] = entry;
    }
    return transfers;
  };
  const auto folded = count(true);
  const auto real = count(false);
  ASSERT_EQ(folded.size(), real.size());
  for (const auto& [name, entry] : folded) {
    EXPECT_NEAR(entry.calls, real.at(name).calls, 1e-9) << name;
    EXPECT_NEAR(entry.tensor_bytes, real.at(name).tensor_bytes, 1e-3) << name;
    EXPECT_NEAR(entry.alone, real.at(name).alone, 1e-12) << name;
  }
  // Stage 0 sends a tensor of 256 x 512 2-byte numbers per micro-batch, stage 1 its gradient; each of two
  // tensor-parallel ranks half of it.
  const auto micro_batches = static_cast<double>(tests::small_plan(16, 2, 2, 1).micro_batches());
  EXPECT_NEAR(folded.at("pipeline send").calls, micro_batches, 1e-9);
  EXPECT_NEAR(folded.at("pipeline send").tensor_bytes, micro_batches * 256 * 512 * 2 / 2, 1e-3);
}

TEST(Traffic, OfARingMeetsItsFormula) {
  // 16 replicas on two nodes: each NIC carries an eighth of what a node's rings send, 2 * 15 / 16 of the
  // gradients.
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.forced_algorithm = Algorithm::kRing;
  const program::Job job =
      tests::make_job(tests::small_gpt(), cluster, tests::small_plan(16, 1, 1, 1), {false});
  double gradients = 0;
  for (const auto& stream : job.programs[0].streams) {
    for (const program::Instruction& instruction : stream) {
      if (instruction.op == program::Opcode::kCollective) gradients += instruction.amount;
    }
  }
  const Traffic traffic = count_traffic(job);
  ASSERT_EQ(traffic.transfers.size(), 1U);
  const Transfers& reduction = traffic.transfers.front();
  EXPECT_EQ(reduction.kind, TrafficKind::kData);
  EXPECT_EQ(reduction.op, "all_reduce");
  EXPECT_NEAR(reduction.tensor_bytes, gradients, 1);
  const LinkTraffic nic = by_name(traffic).at("nic 0 -> leaf 0");
  EXPECT_NEAR(bytes_of(nic, TrafficKind::kData), 2.0 * 15 / 16 * gradients / 8, 1);
  EXPECT_EQ(bytes_of(nic, TrafficKind::kTensor), 0);
}

TEST(Traffic, OfATreeOverTwoNodesIsHalfOfThatBetweenThem) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.forced_algorithm = Algorithm::kTree;
  const program::Job job =
      tests::make_job(tests::small_gpt(), cluster, tests::small_plan(16, 1, 1, 1), {false});
  const auto links = by_name(count_traffic(job));
  const double inside = bytes_of(links.at("gpu 0 -> node switch 0"), TrafficKind::kData);
  const double between = bytes_of(links.at("nic 0 -> leaf 0"), TrafficKind::kData);
  // Of eight rings seven pass on inside the node from each GPU, and one to the other node.
  EXPECT_NEAR(between, inside / 7 / 2, 1e-6 * between);
}

}  // namespace
}  // namespace trainsim::engine
