// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/topology.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
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
  cluster.fabric.oversubscription = 4.0;
  const Topology topology(cluster, 64);
  const Route route = topology.route(0, 63);
  EXPECT_EQ(names(topology, route),
            (Names{"gpu 0 -> nic 0", "nic 0 -> leaf 0", "leaf 0 -> spine layer 0", "spine layer 0 -> leaf 3",
                   "leaf 3 -> nic 63", "nic 63 -> gpu 63"}));
  // 2 nodes x 8 NICs x 10 GB/s below the leaf, a quarter of it above.
  EXPECT_DOUBLE_EQ(topology.bandwidth(route.links[2]), 40e9);
}

TEST(Topology, RailsConnectEqualNicsOfAGroupOfNodes) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.fabric.kind = FabricKind::kRailOptimized;
  cluster.fabric.oversubscription = 2.0;
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

using WholeGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
using Vertices = std::map<std::string, WholeGraph::vertex_descriptor>;

/// Puts all links of a topology into one graph; returns its vertices by name.
Vertices fill(const Topology& topology, WholeGraph& graph) {
  Vertices vertices;
  const auto vertex = [&](const Vertex& end) {
    const auto [entry, added] = vertices.emplace(to_string(end), 0);
    if (added) entry->second = boost::add_vertex(graph);
    return entry->second;
  };
  for (std::uint32_t link = 0; link < topology.link_count(); ++link) {
    const DirectedLink at = topology.link(link);
    const auto from = vertex(at.from);
    boost::add_edge(from, vertex(at.to), graph);
  }
  return vertices;
}

std::vector<ClusterSpec> fabrics() {
  std::vector<ClusterSpec> clusters(7, tests::round_cluster());
  for (ClusterSpec& cluster : clusters) cluster.fabric.oversubscription = 2.0;
  clusters[1].fabric.kind = FabricKind::kRailOptimized;
  clusters[2].fabric.nodes_per_pod = 2;
  clusters[2].fabric.nodes_per_leaf = 1;
  clusters[2].fabric.pod_oversubscription = 3.0;
  clusters[3] = clusters[2];
  clusters[3].fabric.spreading = Spreading::kEcmp;
  clusters[4].fabric.kind = FabricKind::kDragonfly;
  clusters[4].fabric.nodes_per_leaf = 1;
  clusters[4].fabric.routers_per_group = 2;
  clusters[4].fabric.local_bandwidth = 20e9;
  clusters[4].fabric.global_bandwidth = 40e9;
  clusters[5].fabric.kind = FabricKind::kTorus;
  clusters[5].fabric.dimensions = {2, 2};
  clusters[5].fabric.link_bandwidth = 20e9;
  clusters[6] = clusters[1];
  clusters[6].fabric.spreading = Spreading::kEcmp;
  return clusters;
}

/// Every route is a connected walk from its source to its target, and as short as breadth-first search on all
/// links finds: fat trees of two and three levels, rails, dragonfly and torus, ideally spread and hashed.
TEST(Topology, RoutesAreShortestPathsOfTheGraph) {
  for (const ClusterSpec& cluster : fabrics()) {
    const Topology topology(cluster, 32);
    WholeGraph graph;
    const Vertices vertices = fill(topology, graph);
    for (std::int64_t source = 0; source < 32; source += 5) {
      std::vector<std::size_t> distance(boost::num_vertices(graph), 0);
      boost::breadth_first_search(graph, vertices.at("gpu " + std::to_string(source)),
                                  boost::visitor(boost::make_bfs_visitor(
                                      boost::record_distances(distance.data(), boost::on_tree_edge()))));
      for (std::int64_t target = 0; target < 32; ++target) {
        if (target == source) continue;
        const Route route = topology.route(source, target);
        std::string at = "gpu " + std::to_string(source);
        for (const std::uint32_t link : route.links) {
          EXPECT_EQ(to_string(topology.link(link).from), at);
          at = to_string(topology.link(link).to);
        }
        EXPECT_EQ(at, "gpu " + std::to_string(target));
        EXPECT_EQ(route.links.size(), distance[vertices.at(at)]) << source << " to " << target;
      }
    }
  }
}

TEST(Topology, PodsShareACoreLayer) {
  const Topology topology(fabrics()[2], 32);
  EXPECT_EQ(names(topology, topology.route(0, 31)),
            (Names{"gpu 0 -> nic 0", "nic 0 -> leaf 0", "leaf 0 -> spine layer 0",
                   "spine layer 0 -> core layer 0", "core layer 0 -> spine layer 1",
                   "spine layer 1 -> leaf 3", "leaf 3 -> nic 31", "nic 31 -> gpu 31"}));
  // 8 NICs x 10 GB/s below a leaf, half above; two leaves per pod, a third of that above.
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(0, 31).links[2]), 40e9);
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(0, 31).links[3]), 80e9 / 3.0);
  // PCIe 1 us, NIC 2 us, five switches.
  EXPECT_DOUBLE_EQ(topology.route(0, 31).latency, 8e-6);
}

TEST(Topology, EcmpKeepsAFlowOnOneCableAndUsesThemAll) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.fabric.spreading = Spreading::kEcmp;
  cluster.fabric.nodes_per_leaf = 1;
  const Topology topology(cluster, 32);
  std::set<std::string> spines;
  for (std::int64_t gpu = 0; gpu < 8; ++gpu) {
    for (std::int64_t peer = 8; peer < 32; ++peer) {
      const Route route = topology.route(gpu, peer);
      EXPECT_EQ(route.links, topology.route(gpu, peer).links);
      EXPECT_DOUBLE_EQ(topology.bandwidth(route.links[2]), 10e9);  // one cable, as fast as a NIC
      spines.insert(to_string(topology.link(route.links[2]).to));
    }
  }
  EXPECT_EQ(spines.size(), 8U);  // one uplink for each of the 8 NICs below a leaf
  cluster.fabric.seed = 1;
  const Topology other(cluster, 32);
  std::size_t moved = 0;
  for (std::int64_t peer = 8; peer < 32; ++peer)
    moved += other.route(0, peer).links != topology.route(0, peer).links;
  EXPECT_GT(moved, 12U);  // seven of eight on average
}

TEST(Topology, RailOnlyTrafficChangesRailsInsideTheNode) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.fabric.kind = FabricKind::kRailOnly;
  const Topology topology(cluster, 32);
  EXPECT_EQ(topology.route(3, 11).links.size(), 4U);  // same rail: as ever
  EXPECT_EQ(names(topology, topology.route(3, 12)),
            (Names{"gpu 3 -> node switch 0", "node switch 0 -> gpu 4", "gpu 4 -> nic 4", "nic 4 -> leaf 4",
                   "leaf 4 -> nic 12", "nic 12 -> gpu 12"}));
}

TEST(Topology, TorusTakesTheShorterWayRoundDimensionByDimension) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.gpus_per_node = cluster.nics_per_node = 1;
  cluster.fabric.kind = FabricKind::kTorus;
  cluster.fabric.dimensions = {5, 3};
  cluster.fabric.link_bandwidth = 20e9;
  const Topology topology(cluster, 15);
  // (0, 0) to (4, 1): one step back in x, one forward in y.
  EXPECT_EQ(names(topology, topology.route(0, 9)),
            (Names{"gpu 0 -> nic 0", "nic 0 -> router 0", "router 0 -> router 4", "router 4 -> router 9",
                   "router 9 -> nic 9", "nic 9 -> gpu 9"}));
}

TEST(Topology, DragonflyNeedsAtMostOneGlobalCable) {
  const Topology topology(fabrics()[4], 64);  // 8 routers in 4 groups of two
  for (std::int64_t gpu = 0; gpu < 64; gpu += 8) {
    for (std::int64_t peer = 0; peer < 64; peer += 8) {
      if (peer == gpu) continue;
      std::size_t global = 0;
      for (const std::uint32_t link : topology.route(gpu, peer).links)
        global += topology.bandwidth(link) == 40e9;
      EXPECT_EQ(global, peer / 16 == gpu / 16 ? 0U : 1U) << gpu << " to " << peer;
    }
  }
}

TEST(Topology, GpusBelowAPcieSwitchMeetThereOnlyWithPeerToPeer) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.intra_node_kind = IntraNodeKind::kPcie;
  cluster.pcie_tree = {2, 2, 20e9, 15e9, true};
  const Topology direct(cluster, 8);
  EXPECT_EQ(names(direct, direct.route(0, 1)), (Names{"gpu 0 -> pcie switch 0", "pcie switch 0 -> gpu 1"}));
  EXPECT_EQ(names(direct, direct.route(0, 7)),
            (Names{"gpu 0 -> pcie switch 0", "pcie switch 0 -> cpu 0", "cpu 0 -> cpu 1",
                   "cpu 1 -> pcie switch 3", "pcie switch 3 -> gpu 7"}));
  cluster.pcie_tree.peer_to_peer = false;
  const Topology bounced(cluster, 8);
  EXPECT_EQ(names(bounced, bounced.route(0, 1)), (Names{"gpu 0 -> pcie switch 0", "pcie switch 0 -> cpu 0",
                                                        "cpu 0 -> pcie switch 0", "pcie switch 0 -> gpu 1"}));
}

TEST(Topology, MeshesUseTheirCablesAndPcieWhereThereIsNone) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.intra_node_kind = IntraNodeKind::kMesh;
  const Topology full(cluster, 8);
  EXPECT_EQ(names(full, full.route(2, 5)), (Names{"gpu 2 -> gpu 5"}));
  cluster.mesh = {{0, 1, 2}, {2, 3, 1}};
  const Topology pairs(cluster, 8);
  EXPECT_DOUBLE_EQ(pairs.bandwidth(pairs.route(0, 1).links[0]), 200e9);  // two cables
  EXPECT_EQ(names(pairs, pairs.route(1, 2)), (Names{"gpu 1 -> cpu 0", "cpu 0 -> gpu 2"}));
}

TEST(Topology, FaultsWeakenWhatTheyHit) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.faults = {
      {FaultPlace::kNic, 1, 0.5}, {FaultPlace::kGpuPort, 2, 0.25}, {FaultPlace::kLeafUplinks, 0, 0.1}};
  const Topology topology(cluster, 32);
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(1, 9).links[1]), 5e9);
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(9, 1).links[2]), 5e9);
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(2, 3).links[0]), 25e9);
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(3, 4).links[0]), 100e9);
  // Uplinks that could not limit anything now can: 16 NICs x 10 GB/s, a tenth of it left.
  EXPECT_EQ(topology.route(0, 31).links.size(), 5U);
  EXPECT_DOUBLE_EQ(topology.bandwidth(topology.route(0, 31).links[2]), 16e9);
}

TEST(Topology, GpusOfALostNicUseTheNextOfTheirNode) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.faults = {{FaultPlace::kNic, 7, 0.0}};
  const Topology topology(cluster, 16);
  EXPECT_EQ(topology.nic_of(7), 0);
  EXPECT_EQ(topology.nic_of(6), 6);
  EXPECT_EQ(topology.nic_of(15), 15);
  EXPECT_EQ(names(topology, topology.route(7, 15)),
            (Names{"gpu 7 -> node switch 0", "node switch 0 -> gpu 0", "gpu 0 -> nic 0", "nic 0 -> leaf 0",
                   "leaf 0 -> nic 15", "nic 15 -> gpu 15"}));
  EXPECT_EQ(topology.route(15, 7).links.size(), 6U);
}

}  // namespace
}  // namespace trainsim::hardware
