// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "sim/hardware/node_graph.hpp"
#include "sim/hardware/spec.hpp"

namespace trainsim::hardware {

/// Switches between nodes, the cables between switches, and the paths over them.
///
/// With ideal spreading all spines of a pod are one vertex, as are all cores: a leaf's uplinks act as one
/// link of their joint bandwidth. With ECMP each is a vertex of its own.
class FabricGraph {
 public:
  /// The fabric that `nodes` nodes need; empty for a single node.
  FabricGraph(const ClusterSpec& spec, std::int64_t nodes);

  /// Cables between switches, both directions of each, as a path numbers them.
  const std::vector<DirectedLink>& links() const { return links_; }
  /// Switches at the ends of a link.
  std::pair<std::size_t, std::size_t> ends(std::size_t link) const { return ends_[link]; }
  std::size_t switch_count() const { return boost::num_vertices(graph_); }
  /// How many switches there are of a kind.
  std::int64_t count(VertexKind kind) const;
  /// Switch that a NIC (numbered in the whole cluster) is plugged into.
  std::size_t switch_of(std::int64_t nic) const { return ports_[static_cast<std::size_t>(nic)]; }
  /// Name and number of a switch.
  const Vertex& vertex(std::size_t at) const { return graph_[at]; }
  /// Whether cables lead from one switch to the other, over others or not.
  bool connects(std::size_t from, std::size_t to) const;
  /// Links of a shortest path between two switches. Of several that are equally short, ECMP picks by the hash
  /// of `flow`; a torus takes its dimensions in order. REQUIRES: connects(from, to).
  const std::vector<std::uint32_t>& path(std::size_t from, std::size_t to, std::uint64_t flow) const;
  /// Latency of the switches on the way. In trees every flow is charged the height of the whole fabric,
  /// because where a job's nodes lie is not known beforehand.
  Seconds latency(std::size_t from, std::size_t to) const;

 private:
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, std::uint32_t>;
  using VertexId = Graph::vertex_descriptor;
  using Distances = std::vector<std::uint32_t>;
  /// Switches of one pod that only reach each other (all, or those of one rail), in one layer.
  struct Layer {
    std::vector<VertexId> switches;
    /// Bandwidth that enters from below, of all switches together.
    BytesPerSecond below = 0;
  };

  VertexId add(VertexKind kind, std::int64_t index);
  void connect(VertexId lower, VertexId upper, BytesPerSecond bandwidth, bool can_bind);
  void add_tree(std::int64_t nodes);
  void add_plane(const std::vector<VertexId>& leaves, std::int64_t per_group);
  void plug(std::int64_t nodes, const std::vector<VertexId>& leaves, bool rails);
  Layer add_layer_above(const std::vector<VertexId>& below, BytesPerSecond each, double oversubscription,
                        VertexKind kind);
  void add_dragonfly(std::int64_t nodes);
  void add_torus(std::int64_t nodes);
  const Distances& distances_to(std::size_t to) const;
  std::vector<std::uint32_t> find_path(std::size_t from, std::size_t to, std::uint64_t flow) const;
  std::vector<std::uint32_t> dragonfly_path(std::size_t from, std::size_t to) const;
  std::vector<std::uint32_t> torus_path(std::size_t from, std::size_t to) const;
  VertexId gateway(std::int64_t group, std::int64_t other) const;
  /// Link from one switch to its neighbour.
  std::uint32_t cable(std::size_t from, std::size_t to) const;

  ClusterSpec spec_;
  Graph graph_;
  std::vector<DirectedLink> links_;
  std::vector<std::pair<std::size_t, std::size_t>> ends_;
  std::vector<std::size_t> ports_;
  /// Number of switches on the longest way through a tree; 0 where the way itself counts.
  std::int64_t height_ = 0;
  /// Found on demand: hops from every switch to one.
  mutable std::map<std::size_t, Distances> distances_;
  /// The same: paths by both ends and, where it matters, the flow.
  mutable std::map<std::array<std::uint64_t, 3>, std::vector<std::uint32_t>> paths_;
};

}  // namespace trainsim::hardware
