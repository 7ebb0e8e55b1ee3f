// SPDX-License-Identifier: Apache-2.0
// Trees and forced algorithms against NCCL's tuning model written out by hand.
#include <cmath>

#include <gtest/gtest.h>

#include "sim/folding/protocols.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::folding {
namespace {

using program::CollectiveCost;
using program::CollectiveOp;

constexpr double kTight = 1e-12;
constexpr BytesPerSecond kRate = 10e9;
const program::MemberLinks kLinks = tests::links_of(kRate, kRate);

/// 40 us to start; a step inside a node takes 4 us, one between nodes 15 us. No LL between nodes.
hardware::ClusterSpec cluster() {
  hardware::ClusterSpec spec = tests::round_cluster();
  spec.collective_latency = 40e-6;
  spec.intra_node.latency = 4e-6;
  spec.intra_node.ll_latency = 1e-6;
  spec.intra_node.ll_bandwidth = 10e9;
  spec.nic.latency = 14e-6;
  return spec;
}

program::Group group(const hardware::ClusterSpec& spec, std::int64_t size, std::int64_t nodes) {
  program::Group result;
  result.size = size;
  result.nodes = nodes;
  result.protocols = protocols_of(spec, size, nodes, spec.intra_node.latency, 15e-6);
  return result;
}

CollectiveCost all_reduce(const program::Group& members, double bytes) {
  return program::collective_cost(members, CollectiveOp::kAllReduce, bytes, kLinks);
}

TEST(Trees, PassSmallTensorsOverManyNodes) {
  // 64 nodes of 8: up and down 7 steps of 4.6 us in a node and 6 of 15 us between them. A ring would take 896
  // steps of 4 us and 126 of 15 us. At 1 MB a tree runs at half of 0.78 of the rate.
  const CollectiveCost cost = all_reduce(group(cluster(), 512, 64), 1e6);
  EXPECT_EQ(cost.algorithm, Algorithm::kTree);
  EXPECT_EQ(cost.wire, WireProtocol::kSimple);
  EXPECT_NEAR(cost.delay(), 40e-6 + 2 * (7 * 4.6e-6 + 6 * 15e-6), kTight);
  EXPECT_NEAR(cost.inside(), 2e6 / 0.5 / 0.78, 1e-3);
  EXPECT_EQ(cost.between(), cost.inside());
}

TEST(Trees, LeaveLargeTensorsAndFewNodesToRings) {
  // 16 GB: 2 / 0.78 of it against 2 * 511 / 512.
  EXPECT_EQ(all_reduce(group(cluster(), 512, 64), 16e9).algorithm, Algorithm::kRing);
  EXPECT_EQ(all_reduce(group(cluster(), 8, 1), 1000).algorithm, Algorithm::kRing);
}

TEST(Trees, OfTwoNodesSendHalfOfWhatRingsDoBetweenThem) {
  // Each node sends half of the tensor up one tree and half of the sum down the other: N of 2 N. With 40 GB/s
  // inside nodes and 10 between, 1 GB takes N / (0.68 * 10 GB/s); a ring would take 2 * 15 / 16 N / 10 GB/s.
  const program::MemberLinks links = tests::links_of(40e9, 10e9);
  const CollectiveCost cost =
      program::collective_cost(group(cluster(), 16, 2), CollectiveOp::kAllReduce, 4e9, links);
  EXPECT_EQ(cost.algorithm, Algorithm::kTree);
  EXPECT_NEAR(cost.inside(), 8e9 / 0.68, 1);
  EXPECT_NEAR(cost.between(), 4e9 / 0.68, 1);
  EXPECT_NEAR(cost.tuned_time(links), cost.delay() + 4e9 / 0.68 / 10e9, kTight);
}

TEST(Trees, HaveNothingToGather) {
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kReduceScatter}) {
    EXPECT_EQ(program::collective_cost(group(cluster(), 512, 64), op, 1000, kLinks).algorithm,
              Algorithm::kRing);
  }
}

TEST(Trees, TakeLlForTheSmallest) {
  hardware::ClusterSpec spec = cluster();
  spec.nic.ll_latency = 3e-6;
  spec.nic.ll_bandwidth = 2e9;
  // Simple is 3 us slower per step inside a node, 11 us between nodes, where a tree adds 2.3 us to LL.
  const CollectiveCost cost = all_reduce(group(spec, 32, 4), 1000);
  EXPECT_EQ(cost.wire, WireProtocol::kLl);
  EXPECT_NEAR(cost.delay(), 38.4e-6 + 2 * (7 * 1e-6 + 2 * 6.3e-6), kTight);
  // Filling costs nothing at 512 bytes, a tenth at 1 KiB. 2 GB/s are less than 0.78 / 3.8 of 10 GB/s.
  const double filling = 1.0 - 0.1 * std::log2(1000.0 / 512);
  EXPECT_NEAR(cost.inside() / kRate, 2000 / filling / 2e9, kTight);
}

TEST(Trees, FillFasterTheLargerTheTensor) {
  EXPECT_DOUBLE_EQ(program::tree_efficiency(WireProtocol::kSimple, 1), 0.9);
  EXPECT_DOUBLE_EQ(program::tree_efficiency(WireProtocol::kSimple, 4 * kMebi), 0.7);
  EXPECT_NEAR(program::tree_efficiency(WireProtocol::kSimple, 4 * kMebi * std::sqrt(2.0)), 0.75, kTight);
  EXPECT_DOUBLE_EQ(program::tree_efficiency(WireProtocol::kLl, 256 * kKibi), 0.4);
  EXPECT_DOUBLE_EQ(program::tree_efficiency(WireProtocol::kLl128, kGibi), 1.0);
}

TEST(Trees, NoSizeIsSlowerThanALargerOne) {
  hardware::ClusterSpec spec = cluster();
  spec.nic.ll_latency = 3e-6;
  spec.nic.ll_bandwidth = 2e9;
  spec.forced_algorithm = Algorithm::kTree;
  const program::Group members = group(spec, 64, 8);
  Seconds before = 0;
  for (double bytes = 1; bytes < 1e11; bytes *= 1.05) {
    const CollectiveCost cost = all_reduce(members, bytes);
    ASSERT_EQ(cost.algorithm, Algorithm::kTree);
    ASSERT_GE(cost.tuned_time(kLinks), before) << bytes;
    before = cost.tuned_time(kLinks);
  }
}

TEST(Forced, AlgorithmsHoldWhereTheyCanBeUsed) {
  hardware::ClusterSpec spec = cluster();
  spec.forced_algorithm = Algorithm::kTree;
  EXPECT_EQ(all_reduce(group(spec, 512, 64), 16e9).algorithm, Algorithm::kTree);
  EXPECT_EQ(all_reduce(group(spec, 8, 1), 16e9).algorithm, Algorithm::kRing);
  spec.forced_algorithm = Algorithm::kRing;
  EXPECT_EQ(all_reduce(group(spec, 512, 64), 1000).algorithm, Algorithm::kRing);
  spec.intra_node.nvls_bandwidth = 5e9;
  spec.forced_algorithm = Algorithm::kInSwitch;
  EXPECT_EQ(all_reduce(group(spec, 8, 1), 1000).algorithm, Algorithm::kInSwitch);
}

TEST(Forced, ProtocolsHoldWhereTheyCanBeUsed) {
  hardware::ClusterSpec spec = cluster();
  spec.forced_protocol = WireProtocol::kLl;
  EXPECT_EQ(all_reduce(group(spec, 8, 1), 1e9).wire, WireProtocol::kLl);
  // No LL between these nodes.
  EXPECT_EQ(all_reduce(group(spec, 16, 2), 1e9).wire, WireProtocol::kSimple);
  spec.forced_protocol = WireProtocol::kSimple;
  EXPECT_EQ(all_reduce(group(spec, 8, 1), 8).wire, WireProtocol::kSimple);
}

}  // namespace
}  // namespace trainsim::folding
