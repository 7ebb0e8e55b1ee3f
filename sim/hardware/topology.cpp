// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/topology.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace trainsim::hardware {

namespace {

constexpr std::array<const char*, 5> kVertexNames = {"gpu", "node switch", "nic", "leaf", "spine"};

std::string vertex_name(const Vertex& vertex) {
  if (vertex.kind == VertexKind::kSpine) return "spine layer";
  return std::string(kVertexNames[static_cast<std::size_t>(vertex.kind)]) + " " +
         std::to_string(vertex.index);
}

}  // namespace

Topology::Topology(const ClusterSpec& spec, std::int64_t gpus) : spec_(spec) {
  const std::int64_t nodes = (gpus + spec.gpus_per_node - 1) / spec.gpus_per_node;
  for (std::int64_t node = 0; node < nodes; ++node) {
    add_node(node, std::min(spec.gpus_per_node, gpus - node * spec.gpus_per_node));
  }
  if (nodes > 1) add_fabric(nodes);
  up_.resize(boost::num_vertices(graph_));
}

Topology::VertexId Topology::add_vertex(VertexKind kind, std::int64_t index) {
  return boost::add_vertex(Vertex{kind, index}, graph_);
}

void Topology::connect(VertexId lower, VertexId upper, BytesPerSecond bandwidth, Seconds latency) {
  const auto up = static_cast<std::uint32_t>(bandwidth_.size());
  if (up_.size() <= lower) up_.resize(lower + 1);
  up_[lower].push_back(boost::add_edge(lower, upper, Edge{bandwidth, latency, up, up + 1}, graph_).first);
  boost::add_edge(upper, lower, Edge{bandwidth, 0.0, up + 1, up}, graph_);
  bandwidth_.insert(bandwidth_.end(), 2, bandwidth);
  ends_.emplace_back(lower, upper);
  ends_.emplace_back(upper, lower);
}

void Topology::add_node(std::int64_t node, std::int64_t gpus) {
  const VertexId node_switch = add_vertex(VertexKind::kNodeSwitch, node);

  for (std::int64_t nic = 0; nic < spec_.nics_per_node; ++nic) {
    nics_.push_back(add_vertex(VertexKind::kNic, node * spec_.nics_per_node + nic));
    if (spec_.intra_node_kind == IntraNodeKind::kPcie) {
      connect(node_switch, nics_.back(), spec_.pcie.effective_bandwidth(), spec_.pcie.latency);
    }
  }
  for (std::int64_t local = 0; local < gpus; ++local) {
    gpus_.push_back(add_vertex(VertexKind::kGpu, node * spec_.gpus_per_node + local));
    connect(gpus_.back(), node_switch, spec_.intra_node.effective_bandwidth(), spec_.intra_node.latency);
    if (spec_.intra_node_kind == IntraNodeKind::kSwitch && spec_.nics_per_node > 0) {
      const auto nic = static_cast<std::size_t>(nic_of(node * spec_.gpus_per_node + local));
      connect(gpus_.back(), nics_[nic], spec_.pcie.effective_bandwidth(), spec_.pcie.latency);
    }
  }
}

void Topology::add_fabric(std::int64_t nodes) {
  const bool rails = spec_.fabric == FabricKind::kRailOptimized;
  const std::int64_t leaves_per_group = rails ? spec_.nics_per_node : 1;
  const std::int64_t nics_per_leaf = spec_.nodes_per_leaf * (rails ? 1 : spec_.nics_per_node);
  const std::int64_t groups = (nodes + spec_.nodes_per_leaf - 1) / spec_.nodes_per_leaf;
  std::vector<VertexId> leaves;
  for (std::int64_t leaf = 0; leaf < groups * leaves_per_group; ++leaf) {
    leaves.push_back(add_vertex(VertexKind::kLeaf, leaf));
  }
  // Leaf, spine, leaf. Charged to every route between nodes, because where a job's nodes lie is not known
  // beforehand.
  const Seconds fabric_latency = (leaves.size() > 1 ? 3.0 : 1.0) * spec_.switch_latency;
  for (std::size_t nic = 0; nic < nics_.size(); ++nic) {
    const std::int64_t group = static_cast<std::int64_t>(nic) / spec_.nics_per_node / spec_.nodes_per_leaf;
    const std::int64_t rail = rails ? static_cast<std::int64_t>(nic) % spec_.nics_per_node : 0;
    connect(nics_[nic], leaves[static_cast<std::size_t>(group * leaves_per_group + rail)],
            spec_.nic.effective_bandwidth(), spec_.nic.latency + fabric_latency);
  }
  if (leaves.size() < 2) return;
  const VertexId spine = add_vertex(VertexKind::kSpine, 0);
  const BytesPerSecond uplinks =
      static_cast<double>(nics_per_leaf) * spec_.nic.effective_bandwidth() / spec_.oversubscription;
  for (const VertexId leaf : leaves) connect(leaf, spine, uplinks, 0.0);
}

std::vector<Topology::Climb> Topology::climbs(std::int64_t gpu) const {
  std::vector<Climb> found = {{gpus_[static_cast<std::size_t>(gpu)], {}}};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const Climb at = found[next];
    for (const Graph::edge_descriptor& edge : up_[at.vertex]) {
      const Vertex& above = graph_[boost::target(edge, graph_)];
      if (above.kind == VertexKind::kNic && above.index != nic_of(gpu)) continue;
      Climb higher{boost::target(edge, graph_), at.edges};
      higher.edges.push_back(edge);
      found.push_back(std::move(higher));
    }
  }
  return found;
}

/// Uplinks that carry as much as all NICs below them together can never be what limits a flow.
bool Topology::can_bind(const Graph::edge_descriptor& edge) const {
  return spec_.oversubscription > 1.0 || graph_[boost::target(edge, graph_)].kind != VertexKind::kSpine;
}

Route Topology::route(std::int64_t source_gpu, std::int64_t target_gpu) const {
  const std::vector<Climb> up = climbs(source_gpu);
  const std::vector<Climb> down = climbs(target_gpu);
  const Climb* best_up = nullptr;
  const Climb* best_down = nullptr;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const Climb& left : up) {
    for (const Climb& right : down) {
      if (left.vertex != right.vertex || left.edges.size() + right.edges.size() >= fewest) continue;
      fewest = left.edges.size() + right.edges.size();
      best_up = &left;
      best_down = &right;
    }
  }
  if (best_up == nullptr) throw std::logic_error("no route between two GPUs of a checked cluster");
  Route route;
  for (const auto& edge : best_up->edges) {
    if (can_bind(edge)) route.links.push_back(graph_[edge].link);
    route.latency += graph_[edge].latency;
  }
  for (auto edge = best_down->edges.rbegin(); edge != best_down->edges.rend(); ++edge) {
    if (can_bind(*edge)) route.links.push_back(graph_[*edge].reverse);
  }
  return route;
}

std::string Topology::link_name(std::uint32_t link) const {
  return vertex_name(graph_[ends_[link].first]) + " -> " + vertex_name(graph_[ends_[link].second]);
}

}  // namespace trainsim::hardware
