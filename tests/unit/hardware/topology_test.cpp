// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/topology.hpp"

#include <map>
#include <string>
#include <vector>

#include <boost/graph/breadth_first_search.hpp>
#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::hardware {
namespace {

std::vector<std::string> names(const Topology& topology, const Route& route) {
  std::vector<std::string> result;
  for (const std::uint32_t link : route.links) result.push_back(topology.link_name(link));
  return result;
}

using Names = std::vector<std::string>;

TEST(Topology, RouteInsideANodeCrossesTheSwitch) {
  const Topology topology(tests::round_cluster(), 8);
  const Route route = topology.route(1, 6);
  EXPECT_EQ(names(topology, route), (Names{"gpu 1 -> node switch 0", "node switch 0 -> gpu 6"}));
  EXPECT_DOUBLE_EQ(route.latency, 1e-6);  // the latency of an NVLink hop, once
}

TEST(Topology, RouteBelowOneLeafUsesTheGpusOwnNics) {
  const Topology topology(tests::round_cluster(), 16);
  const Route route = topology.route(1, 14);
  EXPECT_EQ(names(topology, route),
            (Names{"gpu 1 -> nic 1", "nic 1 -> leaf 0", "leaf 0 -> nic 14", "nic 14 -> gpu 14"}));
  // PCIe 1 us, NIC 2 us, one leaf 1 us.
  EXPECT_DOUBLE_EQ(route.latency, 4e-6);
}

TEST(Topology, UplinksOfAFullBisectionFabricCannotLimitAFlow) {
  const Topology topology(tests::round_cluster(), 64);
  EXPECT_EQ(topology.route(0, 63).links.size(), 4U);
  // PCIe 1 us, NIC 2 us, leaf-spine-leaf 3 us.
  EXPECT_DOUBLE_EQ(topology.route(0, 63).latency, 6e-6);
}

TEST(Topology, OversubscribedUplinksAreOnTheRoute) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.oversubscription = 4.0;
  const Topology topology(cluster, 64);
  const Route route = topology.route(0, 63);
  EXPECT_EQ(names(topology, route), (Names{"gpu 0 -> nic 0", "nic 0 -> leaf 0", "leaf 0 -> spine layer",
                                           "spine layer -> leaf 3", "leaf 3 -> nic 63", "nic 63 -> gpu 63"}));
  // 2 nodes x 8 NICs x 10 GB/s below the leaf, a quarter of it above.
  EXPECT_DOUBLE_EQ(topology.bandwidth(route.links[2]), 40e9);
}

TEST(Topology, RailsConnectEqualNicsOfAGroupOfNodes) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.fabric = FabricKind::kRailOptimized;
  cluster.oversubscription = 2.0;
  const Topology topology(cluster, 32);
  EXPECT_EQ(topology.route(3, 11).links.size(), 4U);  // same rail: one leaf
  EXPECT_EQ(topology.route(3, 12).links.size(), 6U);  // other rail: over the spine
  // A rail leaf has one NIC of each of its two nodes: 2 x 10 GB/s below, half above.
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(3, 12).links[2]), 10e9);
}

TEST(Topology, GpusShareNicsWhenThereAreFewer) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.nics_per_node = 2;
  const Topology topology(cluster, 16);
  EXPECT_EQ(names(topology, topology.route(3, 8))[0], "gpu 3 -> nic 0");
  EXPECT_EQ(names(topology, topology.route(4, 8))[0], "gpu 4 -> nic 1");
}

TEST(Topology, PcieNodesReachTheirNicsThroughTheRoot) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.intra_node_kind = IntraNodeKind::kPcie;
  cluster.nics_per_node = 1;
  const Topology topology(cluster, 16);
  EXPECT_EQ(names(topology, topology.route(2, 9)),
            (Names{"gpu 2 -> node switch 0", "node switch 0 -> nic 0", "nic 0 -> leaf 0", "leaf 0 -> nic 1",
                   "nic 1 -> node switch 1", "node switch 1 -> gpu 9"}));
}

/// Every route is a connected walk from its source to its target, and as short as breadth-first search on the
/// same graph finds. Rails and PCIe included.
TEST(Topology, RoutesAreShortestPathsOfTheGraph) {
  for (const FabricKind fabric : {FabricKind::kFatTree, FabricKind::kRailOptimized}) {
    ClusterSpec cluster = tests::round_cluster();
    cluster.fabric = fabric;
    cluster.oversubscription = 2.0;
    const Topology topology(cluster, 32);
    const Graph& graph = topology.graph();
    std::map<std::int64_t, Graph::vertex_descriptor> gpus;
    for (auto [v, end] = boost::vertices(graph); v != end; ++v) {
      if (graph[*v].kind == VertexKind::kGpu) gpus[graph[*v].index] = *v;
    }
    for (std::int64_t source = 0; source < 32; source += 5) {
      std::vector<std::size_t> distance(boost::num_vertices(graph), 0);
      boost::breadth_first_search(graph, gpus.at(source),
                                  boost::visitor(boost::make_bfs_visitor(
                                      boost::record_distances(distance.data(), boost::on_tree_edge()))));
      for (std::int64_t target = 0; target < 32; ++target) {
        if (target == source) continue;
        EXPECT_EQ(topology.route(source, target).links.size(), distance[gpus.at(target)])
            << source << " to " << target;
      }
    }
  }
}

}  // namespace
}  // namespace trainsim::hardware
