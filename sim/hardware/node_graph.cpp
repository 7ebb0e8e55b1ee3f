// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/node_graph.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>

namespace trainsim::hardware {

NodeGraph::NodeGraph(const ClusterSpec& spec) {
  for (std::int64_t gpu = 0; gpu < spec.gpus_per_node; ++gpu) gpus_.push_back(add(VertexKind::kGpu, gpu));
  for (std::int64_t nic = 0; nic < spec.nics_per_node; ++nic) nics_.push_back(add(VertexKind::kNic, nic));
  switch (spec.intra_node_kind) {
    case IntraNodeKind::kSwitch:
      add_switch(spec);
      break;
    case IntraNodeKind::kPcie:
      add_pcie(spec);
      break;
    case IntraNodeKind::kMesh:
      add_mesh(spec);
      break;
    case IntraNodeKind::kLinks:
      add_links(spec);
      break;
  }
}

NodeGraph::VertexId NodeGraph::add(VertexKind kind, std::int64_t index) {
  return boost::add_vertex(Vertex{kind, index}, graph_);
}

void NodeGraph::add_one_way(VertexId from, VertexId to, BytesPerSecond bandwidth, Seconds latency) {
  // The smallest of differences for each hop, so that of equally fast paths the shortest is taken.
  constexpr double per_hop = 1e-18;
  const auto link = static_cast<std::uint32_t>(links_.size());
  boost::add_edge(from, to, Connection{link, 1.0 / bandwidth + per_hop}, graph_);
  links_.push_back({graph_[from], graph_[to], bandwidth, latency});
}

void NodeGraph::connect(VertexId lower, VertexId upper, BytesPerSecond bandwidth, Seconds latency) {
  add_one_way(lower, upper, bandwidth, latency);
  add_one_way(upper, lower, bandwidth, 0.0);
}

void NodeGraph::add_nics_at_gpus(const ClusterSpec& spec) {
  if (nics_.empty()) return;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    connect(gpus_[gpu], nics_[gpu * nics_.size() / gpus_.size()], spec.pcie.effective_bandwidth(),
            spec.pcie.latency);
  }
}

void NodeGraph::add_switch(const ClusterSpec& spec) {
  const VertexId node_switch = add(VertexKind::kNodeSwitch, 0);
  for (const VertexId gpu : gpus_)
    connect(gpu, node_switch, spec.intra_node.effective_bandwidth(), spec.intra_node.latency);
  add_nics_at_gpus(spec);
}

/// Without peer-to-peer a switch is two vertices, one that leads up and one that leads down, so that no path
/// turns round below the CPU.
void NodeGraph::add_pcie(const ClusterSpec& spec) {
  const PcieTree& tree = spec.pcie_tree;
  const LinkSpec& port = spec.intra_node;
  std::vector<std::pair<VertexId, VertexId>> above;  // of each GPU: where it sends to and where it hears from
  if (tree.gpus_per_switch == 0) {
    const VertexId root = add(VertexKind::kNodeSwitch, 0);
    above.assign(gpus_.size(), {root, root});
  } else {
    std::vector<VertexId> sockets;
    for (std::int64_t socket = 0; socket < tree.sockets; ++socket) {
      sockets.push_back(add(VertexKind::kCpu, socket));
      for (std::size_t other = 0; other + 1 < sockets.size(); ++other)
        connect(sockets[other], sockets.back(), tree.socket_bandwidth, 0.0);
    }
    const std::int64_t switches = spec.gpus_per_node / tree.gpus_per_switch;
    for (std::int64_t i = 0; i < switches; ++i) {
      const VertexId up = add(VertexKind::kPcieSwitch, i);
      const VertexId down = tree.peer_to_peer ? up : add(VertexKind::kPcieSwitch, i);
      const VertexId socket = sockets[static_cast<std::size_t>(i * tree.sockets / switches)];
      add_one_way(up, socket, tree.uplink_bandwidth, 0.0);
      add_one_way(socket, down, tree.uplink_bandwidth, 0.0);
      above.insert(above.end(), static_cast<std::size_t>(tree.gpus_per_switch), {up, down});
    }
  }
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    add_one_way(gpus_[gpu], above[gpu].first, port.effective_bandwidth(), port.latency);
    add_one_way(above[gpu].second, gpus_[gpu], port.effective_bandwidth(), 0.0);
  }
  for (std::size_t nic = 0; nic < nics_.size(); ++nic) {
    const auto& [up, down] = above[nic * gpus_.size() / nics_.size()];
    add_one_way(down, nics_[nic], spec.pcie.effective_bandwidth(), spec.pcie.latency);
    add_one_way(nics_[nic], up, spec.pcie.effective_bandwidth(), 0.0);
  }
}

/// GPUs that no cable connects reach each other through PCIe.
void NodeGraph::add_mesh(const ClusterSpec& spec) {
  const std::size_t n = gpus_.size();
  cables_.assign(n, std::vector<std::int64_t>(n, spec.mesh.empty() ? 1 : 0));
  for (const MeshLink& link : spec.mesh) {
    const auto a = static_cast<std::size_t>(link.first);
    const auto b = static_cast<std::size_t>(link.second);
    cables_[a][b] = cables_[b][a] = cables_[a][b] + link.cables;
  }
  for (std::size_t a = 0; a < n; ++a) {
    cables_[a][a] = 0;
    for (std::size_t b = 0; b < n; ++b) {
      const double cables = static_cast<double>(cables_[a][b]);
      if (cables > 0)
        add_one_way(gpus_[a], gpus_[b], cables * spec.intra_node.effective_bandwidth(),
                    spec.intra_node.latency);
    }
  }
  if (!spec.mesh.empty()) {
    const VertexId root = add(VertexKind::kCpu, 0);
    for (const VertexId gpu : gpus_) connect(gpu, root, spec.pcie.effective_bandwidth(), spec.pcie.latency);
  }
  add_nics_at_gpus(spec);
}

/// Links between the same two devices are one of their joint bandwidth.
void NodeGraph::add_links(const ClusterSpec& spec) {
  written_latency_ = {spec.intra_node.latency, spec.pcie.latency};
  std::map<std::pair<VertexKind, std::int64_t>, VertexId> others;
  const auto vertex = [&](const Vertex& at) {
    if (at.kind == VertexKind::kGpu) return gpus_[static_cast<std::size_t>(at.index)];
    if (at.kind == VertexKind::kNic) return nics_[static_cast<std::size_t>(at.index)];
    const auto [entry, added] = others.try_emplace({at.kind, at.index}, 0);
    if (added) entry->second = add(at.kind, at.index);
    return entry->second;
  };
  std::map<std::pair<VertexId, VertexId>, NodeLink> joint;
  for (const NodeLink& link : spec.node_links) {
    const VertexId first = vertex(link.first);
    const VertexId second = vertex(link.second);
    NodeLink& sum =
        joint.try_emplace(std::minmax(first, second), NodeLink{link.first, link.second, 0, 0}).first->second;
    sum.bandwidth += link.bandwidth;
    sum.cables += link.cables;
  }
  for (const auto& [ends, link] : joint) add_link(ends.first, ends.second, link);
}

void NodeGraph::add_link(VertexId first, VertexId second, const NodeLink& link) {
  add_one_way(first, second, link.bandwidth, 0.0);
  add_one_way(second, first, link.bandwidth, 0.0);
  const auto is_gpu = [this](VertexId at) { return graph_[at].kind == VertexKind::kGpu; };
  if (!is_gpu(first) || !is_gpu(second)) return;
  cables_.resize(gpus_.size(), std::vector<std::int64_t>(gpus_.size(), 0));
  const auto a = static_cast<std::size_t>(graph_[first].index);
  const auto b = static_cast<std::size_t>(graph_[second].index);
  cables_[a][b] = cables_[b][a] = link.cables;
}

std::int64_t NodeGraph::nearest_nic(std::int64_t gpu) const {
  const auto nics = static_cast<std::int64_t>(nics_.size());
  const std::int64_t own = gpu * nics / static_cast<std::int64_t>(gpus_.size());
  std::int64_t nearest = -1;
  std::size_t fewest = 0;
  for (std::int64_t step = 0; step < nics; ++step) {
    const std::int64_t nic = (own + step) % nics;
    const std::size_t hops = path({VertexKind::kGpu, gpu}, {VertexKind::kNic, nic}).size();
    if (hops == 0 || (nearest >= 0 && hops >= fewest)) continue;
    nearest = nic;
    fewest = hops;
  }
  return nearest;
}

std::int64_t NodeGraph::count(VertexKind kind) const {
  const auto [begin, end] = boost::vertices(graph_);
  return std::count_if(begin, end, [&](VertexId vertex) { return graph_[vertex].kind == kind; });
}

bool NodeGraph::is_full_mesh() const {
  for (std::size_t a = 0; a < cables_.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (cables_[a][b] == 0) return false;
    }
  }
  return !cables_.empty();
}

std::int64_t NodeGraph::cables(std::int64_t gpu, std::int64_t other) const {
  return cables_.empty() ? 0 : cables_[static_cast<std::size_t>(gpu)][static_cast<std::size_t>(other)];
}

const std::vector<std::uint32_t>& NodeGraph::path(const Vertex& from, const Vertex& to) const {
  const auto id = [&](const Vertex& device) {
    return (device.kind == VertexKind::kGpu ? gpus_ : nics_)[static_cast<std::size_t>(device.index)];
  };
  const VertexId start = id(from);
  if (!paths_.contains(start)) find_paths(start);
  return paths_.at(start)[id(to)];
}

Seconds NodeGraph::latency(const Vertex& from, const Vertex& to) const {
  if (written_latency_) {
    if (from.kind == VertexKind::kNic) return 0.0;
    return to.kind == VertexKind::kNic ? written_latency_->second : written_latency_->first;
  }
  Seconds sum = 0;
  for (const std::uint32_t link : path(from, to)) sum += links_[link].latency;
  return sum;
}

void NodeGraph::find_paths(VertexId from) const {
  const auto usable = [this, from](const Graph::edge_descriptor& edge) {
    const VertexId source = boost::source(edge, graph_);
    const VertexKind kind = graph_[source].kind;
    return source == from || (kind != VertexKind::kGpu && kind != VertexKind::kNic);
  };
  const boost::filtered_graph<Graph, std::function<bool(const Graph::edge_descriptor&)>> passable(graph_,
                                                                                                  usable);
  const std::size_t n = boost::num_vertices(graph_);
  std::vector<VertexId> before(n);
  boost::dijkstra_shortest_paths(
      passable, from,
      boost::predecessor_map(before.data()).weight_map(boost::get(&Connection::weight, graph_)));
  auto& paths = paths_[from];
  paths.resize(n);
  for (VertexId to = 0; to < n; ++to) {
    for (VertexId at = to; before[at] != at; at = before[at])
      paths[to].push_back(graph_[boost::edge(before[at], at, graph_).first].link);
    std::reverse(paths[to].begin(), paths[to].end());
  }
}

}  // namespace trainsim::hardware
