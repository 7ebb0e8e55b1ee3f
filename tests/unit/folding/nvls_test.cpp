// SPDX-License-Identifier: Apache-2.0
// NVLS trees, reduction in the network and hierarchical all-reduces against NCCL's tuning model and closed
// forms written out by hand.
#include <gtest/gtest.h>

#include "sim/folding/protocols.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::folding {
namespace {

using program::CollectiveCost;
using program::CollectiveOp;
using program::Phase;

constexpr double kTight = 1e-12;
/// 100 GB/s inside nodes, 10 GB/s between them.
const program::MemberLinks kLinks = tests::links_of(100e9, 10e9);

/// 40 us to start; a step inside a node takes 4 us, one between nodes 15 us. Switches of nodes add up at 50
/// GB/s.
hardware::ClusterSpec cluster() {
  hardware::ClusterSpec spec = tests::round_cluster();
  spec.collective_latency = 40e-6;
  spec.intra_node.latency = 4e-6;
  spec.intra_node.nvls_bandwidth = 50e9;
  return spec;
}

hardware::ClusterSpec forced(Algorithm algorithm) {
  hardware::ClusterSpec spec = cluster();
  spec.forced_algorithm = algorithm;
  spec.fabric.in_network_reduction = algorithm == Algorithm::kInNetwork;
  return spec;
}

CollectiveCost all_reduce(const hardware::ClusterSpec& spec, std::int64_t size, std::int64_t nodes,
                          double bytes) {
  program::Group group;
  group.size = size;
  group.nodes = nodes;
  group.protocols = protocols_of(spec, size, nodes, spec.intra_node.latency, 15e-6);
  return program::collective_cost(group, CollectiveOp::kAllReduce, bytes, kLinks);
}

TEST(NvlsTrees, AddUpInNodesAndGoUpAndDownBetweenThem) {
  // 64 MiB on four nodes of 8: filling leaves 0.8 of the rate. 40 + 16.6 us, and up and down two steps of 15
  // + 6.9 us. Each GPU sends 9/8 of the tensor at 0.7 of 50 GB/s, and its NIC, of eight, 2/8.
  const double bytes = 64 * kMebi;
  const CollectiveCost cost = all_reduce(forced(Algorithm::kNvlsTree), 32, 4, bytes);
  EXPECT_EQ(cost.algorithm, Algorithm::kNvlsTree);
  EXPECT_EQ(cost.wire, WireProtocol::kSimple);
  EXPECT_NEAR(cost.delay(), 56.6e-6 + 4 * 21.9e-6, kTight);
  EXPECT_NEAR(cost.inside() / 100e9, 9.0 / 8 * bytes / 0.8 / 35e9, 1e-9);
  EXPECT_NEAR(cost.between(), 2 * bytes / 0.8, 1e-3);
}

TEST(NvlsTrees, OfTwoNodesSendTheTensorOnce) {
  const CollectiveCost cost = all_reduce(forced(Algorithm::kNvlsTree), 16, 2, kGibi);
  EXPECT_NEAR(cost.delay(), 56.6e-6 + 2 * 21.9e-6, kTight);
  EXPECT_NEAR(cost.inside() / 100e9, 9.0 / 8 * kGibi / 45e9, 1e-9);
  EXPECT_NEAR(cost.between(), kGibi, 1e-3);
}

TEST(NvlsTrees, AreTakenForMiddleSizesOverManyNodes) {
  // 4 MiB on 64 nodes of 8, at 0.7 of the rate: 319 us and 2 N / 0.7 / 10 GB/s = 1.2 ms; a tree takes 284 us
  // and, at 0.78 of that rate, 1.54 ms; a ring 896 steps of 4 us.
  EXPECT_EQ(all_reduce(cluster(), 512, 64, 4 * kMebi).algorithm, Algorithm::kNvlsTree);
  // 16 GB: 2 N against 2 * 511/512 N of a ring.
  EXPECT_EQ(all_reduce(cluster(), 32, 4, 16e9).algorithm, Algorithm::kRing);
}

TEST(NvlsTrees, NeedTwoMembersInEachNodeAndTwoNics) {
  const auto algorithm = [](const hardware::ClusterSpec& spec, std::int64_t size, std::int64_t nodes) {
    return all_reduce(spec, size, nodes, kMebi).algorithm;
  };
  hardware::ClusterSpec spec = forced(Algorithm::kNvlsTree);
  EXPECT_EQ(algorithm(spec, 8, 4), Algorithm::kNvlsTree);
  EXPECT_NE(algorithm(spec, 4, 4), Algorithm::kNvlsTree);
  EXPECT_EQ(algorithm(spec, 8, 1), Algorithm::kInSwitch);
  spec.nics_per_node = 1;
  EXPECT_NE(algorithm(spec, 8, 4), Algorithm::kNvlsTree);
}

TEST(InNetwork, NodesAddUpFirstWhereTheirSwitchCan) {
  // 40 + 16.6 us and one step of 15 + 4; until the switch is up to speed it loses what 2.05 MB, 41 us of its
  // 50 GB/s, take.
  const CollectiveCost cost = all_reduce(forced(Algorithm::kInNetwork), 32, 4, 1e9);
  EXPECT_EQ(cost.algorithm, Algorithm::kInNetwork);
  EXPECT_NEAR(cost.delay(), 75.6e-6 + 1.125e9 / 45e9 * 1.845e6 / 1.001845e9, 1e-9);
  EXPECT_NEAR(cost.inside() / 100e9, 1.125e9 / 45e9, 1e-9);
  EXPECT_NEAR(cost.between(), 1e9, 1e-3);
}

TEST(InNetwork, MembersOfANodeSendDirectlyOrAsAChain) {
  hardware::ClusterSpec spec = forced(Algorithm::kInNetwork);
  spec.intra_node.nvls_bandwidth = 0;
  // Through an NVSwitch: 40 - 8.4 us, twice a step of 4.3 us and 7 members of 0.4, then 15 + 17 us.
  CollectiveCost cost = all_reduce(spec, 32, 4, 1e9);
  EXPECT_NEAR(cost.delay(), 31.6e-6 + 2 * (4.3e-6 + 7 * 0.4e-6) + 32e-6, kTight);
  EXPECT_NEAR(cost.inside(), 2e9 * 1.25, 1e-3);
  EXPECT_NEAR(cost.between(), 1e9, 1e-3);
  // As a chain: twice 7 steps of 3.4 us, then 15 + 16 us.
  spec.intra_node_kind = hardware::IntraNodeKind::kPcie;
  cost = all_reduce(spec, 32, 4, 1e9);
  EXPECT_NEAR(cost.delay(), 31.6e-6 + 14 * 3.4e-6 + 31e-6, kTight);
  // One member in each node has nothing to add up before.
  EXPECT_NEAR(all_reduce(spec, 4, 4, 1e9).delay(), 31.6e-6 + 15e-6, kTight);
}

TEST(InNetwork, IsTakenWhereTheFabricOffersIt) {
  hardware::ClusterSpec spec = cluster();
  EXPECT_NE(all_reduce(spec, 512, 64, 1e9).algorithm, Algorithm::kInNetwork);
  spec.fabric.in_network_reduction = true;
  EXPECT_EQ(all_reduce(spec, 512, 64, 1e9).algorithm, Algorithm::kInNetwork);
  EXPECT_EQ(all_reduce(spec, 8, 1, 1e9).algorithm, Algorithm::kInSwitch);
}

void expect_phase(const Phase& phase, Seconds delay, double inside, double between) {
  EXPECT_NEAR(phase.delay, delay, kTight);
  EXPECT_NEAR(phase.inside, inside, 1e-3);
  EXPECT_NEAR(phase.between, between, 1e-3);
}

TEST(Hierarchical, ThreeCollectivesFollowEachOther) {
  // Four nodes of 8. Members copy half of their share once more at the end of a phase inside a node.
  hardware::ClusterSpec spec = forced(Algorithm::kHierarchical);
  spec.intra_node.phase_copy = 0.5;
  const CollectiveCost cost = all_reduce(spec, 32, 4, 1e9);
  ASSERT_EQ(cost.phases.size(), 3U);
  const double copied = 1e9 * (1 + 0.5 / 7);
  expect_phase(cost.phases[0], 40e-6 + 7 * 4e-6, copied, 0);
  expect_phase(cost.phases[1], 40e-6 + 6 * 15e-6, 0, 1.5e9);
  expect_phase(cost.phases[2], 40e-6 + 7 * 4e-6, copied, 0);
  EXPECT_NEAR(cost.tuned_time(kLinks), cost.delay() + 2 * copied / 100e9 + 1.5e9 / 10e9, kTight);
}

TEST(Hierarchical, IsTakenWhenForcedAndPossibleOnly) {
  const hardware::ClusterSpec spec = forced(Algorithm::kHierarchical);
  EXPECT_EQ(all_reduce(spec, 16, 2, 1e9).algorithm, Algorithm::kHierarchical);
  // One member in each node; one node; members that nodes do not share equally.
  EXPECT_NE(all_reduce(spec, 4, 4, 1e9).algorithm, Algorithm::kHierarchical);
  EXPECT_NE(all_reduce(spec, 8, 1, 1e9).algorithm, Algorithm::kHierarchical);
  EXPECT_NE(all_reduce(spec, 12, 5, 1e9).algorithm, Algorithm::kHierarchical);
}

TEST(Hierarchical, OtherOperationsStayRings) {
  hardware::ClusterSpec spec = forced(Algorithm::kHierarchical);
  program::Group group;
  group.size = 32;
  group.nodes = 4;
  group.protocols = protocols_of(spec, 32, 4, 4e-6, 15e-6);
  for (const CollectiveOp op :
       {CollectiveOp::kAllGather, CollectiveOp::kReduceScatter, CollectiveOp::kBroadcast})
    EXPECT_EQ(program::collective_cost(group, op, 1e9, kLinks).algorithm, Algorithm::kRing);
}

}  // namespace
}  // namespace trainsim::folding
