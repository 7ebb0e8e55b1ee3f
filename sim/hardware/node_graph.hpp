// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "sim/hardware/spec.hpp"
#include "sim/hardware/vertex.hpp"

namespace trainsim::hardware {

/// One direction of a connection.
struct DirectedLink {
  Vertex from;
  Vertex to;
  /// Effective bandwidth.
  BytesPerSecond bandwidth = 0;
  Seconds latency = 0;
  /// Whether it can limit a flow at all.
  bool can_bind = true;
};

/// Devices and connections inside a node, and the paths between them. All nodes of a cluster are alike, so
/// one object serves for all; devices are numbered within the node.
class NodeGraph {
 public:
  explicit NodeGraph(const ClusterSpec& spec);

  /// Connections, both directions of each, as a path numbers them.
  const std::vector<DirectedLink>& links() const { return links_; }
  /// How many devices of a kind the node has.
  std::int64_t count(VertexKind kind) const;
  /// Links of the fastest path (the least time per byte) between two devices. No path leads through another
  /// GPU or NIC. Empty when there is none.
  const std::vector<std::uint32_t>& path(const Vertex& from, const Vertex& to) const;
  /// Latency of that path. A way down from a NIC adds none: it is booked where the way goes up.
  Seconds latency(const Vertex& from, const Vertex& to) const;
  /// The NIC that a GPU is nearest to, of equally near ones its own share of them; -1 when it reaches none.
  std::int64_t nearest_nic(std::int64_t gpu) const;
  /// Whether each two GPUs have a cable.
  bool is_full_mesh() const;
  /// Whether GPUs are cabled to each other, and how many cables connect two of them directly.
  bool has_cables() const { return !cables_.empty(); }
  std::int64_t cables(std::int64_t gpu, std::int64_t other) const;

 private:
  /// Index into links_, and time per byte.
  struct Connection {
    std::uint32_t link = 0;
    double weight = 0;
  };
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Connection>;
  using VertexId = Graph::vertex_descriptor;

  VertexId add(VertexKind kind, std::int64_t index);
  void add_one_way(VertexId from, VertexId to, BytesPerSecond bandwidth, Seconds latency);
  /// Both directions of a connection whose latency is booked on the way up only, so that a path that climbs
  /// and descends counts it once.
  void connect(VertexId lower, VertexId upper, BytesPerSecond bandwidth, Seconds latency);
  void add_switch(const ClusterSpec& spec);
  void add_pcie(const ClusterSpec& spec);
  void add_mesh(const ClusterSpec& spec);
  void add_links(const ClusterSpec& spec);
  void add_link(VertexId first, VertexId second, const NodeLink& link);
  /// Connects each NIC straight to the GPUs that use it.
  void add_nics_at_gpus(const ClusterSpec& spec);
  void find_paths(VertexId from) const;

  Graph graph_;
  /// Latency from a GPU to another and to a NIC, where links don't have their own.
  std::optional<std::pair<Seconds, Seconds>> written_latency_;
  std::vector<DirectedLink> links_;
  std::vector<VertexId> gpus_;
  std::vector<VertexId> nics_;
  std::vector<std::vector<std::int64_t>> cables_;
  /// Found on demand: paths from a vertex to every other.
  mutable std::map<VertexId, std::vector<std::vector<std::uint32_t>>> paths_;
};

}  // namespace trainsim::hardware
