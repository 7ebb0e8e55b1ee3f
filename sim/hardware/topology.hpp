// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"

namespace trainsim::hardware {

/// What a vertex of the topology graph is. The order is the height in the tree: routes climb, then descend.
enum class VertexKind : std::uint8_t { kGpu, kNodeSwitch, kNic, kLeaf, kSpine };

/// Vertex: its kind and its number among those of that kind.
struct Vertex {
  VertexKind kind = VertexKind::kGpu;
  std::int64_t index = 0;
};

/// One direction of a cable, or of a bundle of equal cables over which traffic is spread evenly.
struct Edge {
  BytesPerSecond bandwidth = 0;
  Seconds latency = 0;
  /// Number of this direction, and of the opposite one, in 0 … link_count() - 1.
  std::uint32_t link = 0;
  std::uint32_t reverse = 0;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Edge>;

/// Links from one GPU to another that can limit a flow, in order, and the latency of the whole way. Uplinks
/// of a fabric without oversubscription are left out: they carry all that the NICs below them can send.
struct Route {
  std::vector<std::uint32_t> links;
  Seconds latency = 0;
};

/// The GPUs, switches and NICs of a cluster as a graph, with routes computed from it.
///
/// The spine layer is one vertex: traffic above the leaves is taken to be spread evenly over all spines, so a
/// leaf's uplinks act as one link of their joint bandwidth.
class Topology {
 public:
  /// Builds the nodes that hold `gpus` GPUs. REQUIRES: a spec that plan::check accepts.
  Topology(const ClusterSpec& spec, std::int64_t gpus);

  /// Shortest climbing-then-descending path between two different GPUs; it never passes through a third GPU.
  /// Throws std::logic_error when there is none.
  Route route(std::int64_t source_gpu, std::int64_t target_gpu) const;
  /// Directed links, counting each direction of a cable.
  std::size_t link_count() const { return bandwidth_.size(); }
  /// Effective bandwidth of a link.
  BytesPerSecond bandwidth(std::uint32_t link) const { return bandwidth_[link]; }
  /// Name for people, such as "gpu 3 -> node switch 0".
  std::string link_name(std::uint32_t link) const;
  /// Node that holds a GPU.
  std::int64_t node_of(std::int64_t gpu) const { return gpu / spec_.gpus_per_node; }
  /// The graph, for checks and drawings.
  const Graph& graph() const { return graph_; }

 private:
  using VertexId = Graph::vertex_descriptor;
  /// A vertex reached by climbing from a GPU, with the edges used.
  struct Climb {
    VertexId vertex = 0;
    std::vector<Graph::edge_descriptor> edges;
  };

  VertexId add_vertex(VertexKind kind, std::int64_t index);
  /// Adds both directions of a cable; the latency is booked on the way up only, so that a route that climbs
  /// and descends counts it once.
  void connect(VertexId lower, VertexId upper, BytesPerSecond bandwidth, Seconds latency);
  void add_node(std::int64_t node, std::int64_t gpus);
  void add_fabric(std::int64_t nodes);
  /// Everything above a GPU, its own NIC but no other included.
  std::vector<Climb> climbs(std::int64_t gpu) const;
  /// NIC that a GPU uses.
  std::int64_t nic_of(std::int64_t gpu) const {
    return node_of(gpu) * spec_.nics_per_node +
           gpu % spec_.gpus_per_node * spec_.nics_per_node / spec_.gpus_per_node;
  }
  bool can_bind(const Graph::edge_descriptor& edge) const;

  ClusterSpec spec_;
  Graph graph_;
  /// Edges that lead up from each vertex.
  std::vector<std::vector<Graph::edge_descriptor>> up_;
  std::vector<VertexId> gpus_;
  std::vector<VertexId> nics_;
  std::vector<BytesPerSecond> bandwidth_;
  std::vector<std::pair<VertexId, VertexId>> ends_;
};

}  // namespace trainsim::hardware
