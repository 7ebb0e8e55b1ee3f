// SPDX-License-Identifier: Apache-2.0
// Protocols of collectives against NCCL's tuning model written out by hand.
#include "sim/folding/protocols.hpp"

#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::folding {
namespace {

using program::CollectiveCost;
using program::CollectiveOp;

constexpr double kTight = 1e-12;

/// Links of one rate inside nodes and between them.
program::MemberLinks links(BytesPerSecond rate) {
  return tests::links_of(rate, rate);
}

/// 100 GB/s per GPU, 40 us to start; per step 4 us (Simple), 2 us (LL128), 1 us (LL), and LL at 10 GB/s.
hardware::ClusterSpec cluster() {
  hardware::ClusterSpec spec = tests::round_cluster();
  spec.collective_latency = 40e-6;
  spec.intra_node.latency = 4e-6;
  spec.intra_node.ll128_latency = 2e-6;
  spec.intra_node.ll_latency = 1e-6;
  spec.intra_node.ll_bandwidth = 10e9;
  return spec;
}

program::Group group(const hardware::ClusterSpec& spec, std::int64_t size, std::int64_t nodes = 1) {
  program::Group result;
  result.size = size;
  result.nodes = nodes;
  result.protocols = protocols_of(spec, size, nodes, spec.intra_node.latency, 15e-6);
  return result;
}

TEST(Protocols, SmallMessagesTakeLl) {
  // 8 members, 1,000 bytes: 2 * 7 / 8 * 1000 = 1750 bytes at 10 GB/s after 40 - 1.8 + 14 * 1 us.
  const CollectiveCost cost =
      program::collective_cost(group(cluster(), 8), CollectiveOp::kAllReduce, 1000, links(100e9));
  EXPECT_NEAR(cost.delay(), 52.2e-6, kTight);
  EXPECT_NEAR(cost.inside() / 100e9, 1750 / 10e9, kTight);
}

TEST(Protocols, MediumOnesTakeLl128) {
  // 1 MB: 1.75 MB, of which 120 of 128 bytes are data, after 40 + 5.6 + 14 * 2 us: 92.3 us. LL takes 52.2 +
  // 175 us, Simple 40 + 56 + 17.5 us.
  const CollectiveCost cost =
      program::collective_cost(group(cluster(), 8), CollectiveOp::kAllReduce, 1e6, links(100e9));
  EXPECT_NEAR(cost.delay(), 73.6e-6, kTight);
  EXPECT_NEAR(cost.inside(), 1.75e6 * 128 / 120, 1e-3);
}

TEST(Protocols, LargeOnesTakeSimple) {
  const CollectiveCost cost =
      program::collective_cost(group(cluster(), 8), CollectiveOp::kAllReduce, 1e9, links(100e9));
  EXPECT_NEAR(cost.delay(), 96e-6, kTight);
  EXPECT_NEAR(cost.inside(), 1.75e9, 1e-3);
}

TEST(Protocols, PhasesCopyTheirShareOnceMore) {
  hardware::ClusterSpec spec = cluster();
  spec.intra_node.phase_copy = 0.5;
  const auto sent = [&](std::int64_t size, std::int64_t nodes) {
    return program::collective_cost(group(spec, size, nodes), CollectiveOp::kAllGather, 1e9, links(100e9))
        .inside();
  };
  EXPECT_NEAR(sent(2, 1), 0.5e9 * 1.5, 1e-3);
  EXPECT_NEAR(sent(6, 1), 5.0 / 6 * 1e9 * 1.1, 1e-3);
  EXPECT_NEAR(sent(16, 2), 15.0 / 16 * 1e9, 1e-3);
}

TEST(Protocols, StepsOfRingsBetweenNodesHaveTheirOwnLatency) {
  // 16 members on two nodes: 2 of 30 steps go between nodes. No LL there without its constants, and never
  // LL128.
  hardware::ClusterSpec spec = cluster();
  spec.forced_algorithm = Algorithm::kRing;
  CollectiveCost cost = program::collective_cost(group(spec, 16, 2), CollectiveOp::kAllReduce, 1, links(1e9));
  EXPECT_EQ(cost.wire, WireProtocol::kSimple);
  EXPECT_NEAR(cost.delay(), 40e-6 + 28 * 4e-6 + 2 * 15e-6, kTight);
  spec.nic.latency = 14e-6;
  spec.nic.ll_latency = 3e-6;
  spec.nic.ll_bandwidth = 2e9;
  cost = program::collective_cost(group(spec, 16, 2), CollectiveOp::kAllReduce, 1000, links(10e9));
  // A step between nodes takes 15 us with Simple, 11 us less with LL.
  EXPECT_NEAR(cost.delay(), 38.2e-6 + 28 * 1e-6 + 2 * 4e-6, kTight);
  EXPECT_NEAR(cost.inside() / 10e9, 1875 / 2e9, kTight);
}

TEST(Protocols, SwitchesReduceForFiveMembersAndMore) {
  hardware::ClusterSpec spec = cluster();
  spec.intra_node.nvls_bandwidth = 90e9;
  // 8 members, 1 GB: each link carries (1 + 1/8) GB at 90 GB/s; a ring would take 1.75 GB at 100 GB/s. The
  // start costs 56.6 us and as long as (1 + 1/8) M / (1 + M / 1 GB) take, M = what goes through in 41 us.
  const CollectiveCost cost =
      program::collective_cost(group(spec, 8), CollectiveOp::kAllReduce, 1e9, links(100e9));
  const double pipeline = 41e-6 * 90e9;
  EXPECT_NEAR(cost.inside() / 100e9, 1.125e9 / 90e9, 1e-9);
  EXPECT_NEAR(cost.delay(), 56.6e-6 + 1.125e9 / 90e9 * pipeline / (1e9 + pipeline), 1e-9);
  // Gathers have nothing to reduce, and four members use a ring.
  EXPECT_NEAR(program::collective_cost(group(spec, 8), CollectiveOp::kAllGather, 1e9, links(100e9)).inside(),
              0.875e9, 1);
  EXPECT_NEAR(program::collective_cost(group(spec, 4), CollectiveOp::kAllReduce, 1e9, links(100e9)).inside(),
              1.5e9, 1);
}

/// 16 members on two nodes of 8 NICs: one step between nodes, for which each NIC sends the chunks of two
/// channels, 2 * 512 KiB; of a smaller broadcast its share.
TEST(Protocols, NodesOfABroadcastStoreAChunk) {
  hardware::ClusterSpec spec = cluster();
  spec.nics_per_node = 8;
  spec.nic.bandwidth = 10e9;
  const auto delay = [&](CollectiveOp op, double bytes) {
    return program::collective_cost(group(spec, 16, 2), op, bytes, links(100e9)).delay();
  };
  const Seconds ring = delay(CollectiveOp::kAllGather, 1e9);
  EXPECT_NEAR(delay(CollectiveOp::kBroadcast, 1e9) - ring, 2 * 524288 / 10e9, kTight);
  EXPECT_NEAR(delay(CollectiveOp::kBroadcast, 8 * 524288) - ring, 524288 / 10e9, kTight);
}

/// Links that carry rings at 0.8 of their bandwidth and all-to-alls at 0.6 move a third more in their time.
TEST(Protocols, AllToAllsInANodeHaveAnEfficiencyOfTheirOwn) {
  hardware::ClusterSpec spec = cluster();
  spec.intra_node.efficiency = 0.8;
  const auto inflation = [&spec](program::Pattern pattern, std::int64_t nodes) {
    return message_protocol(spec, pattern, nodes, 1e-6, 1e-6).inflation;
  };
  EXPECT_EQ(inflation(program::Pattern::kPairs, 1), 1.0);
  spec.intra_node.all_to_all_efficiency = 0.6;
  EXPECT_NEAR(inflation(program::Pattern::kPairs, 1), 0.8 / 0.6, kTight);
  EXPECT_EQ(inflation(program::Pattern::kPairs, 2), 1.0);
  EXPECT_EQ(inflation(program::Pattern::kNeighbours, 1), 1.0);
}

TEST(Protocols, NoSizeIsSlowerThanALargerOne) {
  hardware::ClusterSpec spec = cluster();
  spec.intra_node.nvls_bandwidth = 90e9;
  spec.intra_node.phase_copy = 0.25;
  const program::Group members = group(spec, 8);
  Seconds before = 0;
  for (double bytes = 1; bytes < 1e11; bytes *= 1.1) {
    const CollectiveCost cost =
        program::collective_cost(members, CollectiveOp::kAllReduce, bytes, links(100e9));
    const Seconds time = cost.delay() + cost.inside() / 100e9;
    ASSERT_GE(time, before) << bytes;
    before = time;
  }
}

}  // namespace
}  // namespace trainsim::folding
