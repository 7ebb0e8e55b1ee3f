// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/fabric_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <boost/graph/breadth_first_search.hpp>

#include "sim/base/hash.hpp"

namespace trainsim::hardware {

namespace {

constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();

/// Rounds a division of positive numbers up.
std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

}  // namespace

FabricGraph::FabricGraph(const ClusterSpec& spec, std::int64_t nodes) : spec_(spec) {
  if (nodes < 2 || spec.nics_per_node < 1) return;
  switch (spec.fabric.kind) {
    case FabricKind::kFatTree:
    case FabricKind::kRailOptimized:
    case FabricKind::kRailOnly:
      add_tree(nodes);
      break;
    case FabricKind::kDragonfly:
      add_dragonfly(nodes);
      break;
    case FabricKind::kTorus:
      add_torus(nodes);
      break;
  }
}

FabricGraph::VertexId FabricGraph::add(VertexKind kind, std::int64_t index) {
  return boost::add_vertex(Vertex{kind, index}, graph_);
}

void FabricGraph::connect(VertexId lower, VertexId upper, BytesPerSecond bandwidth, bool can_bind) {
  const BytesPerSecond ours = bandwidth * (1.0 - spec_.fabric.background_load);
  for (const auto& [from, to] : {std::pair(lower, upper), std::pair(upper, lower)}) {
    boost::add_edge(from, to, static_cast<std::uint32_t>(links_.size()), graph_);
    links_.push_back({graph_[from], graph_[to], ours, 0.0, can_bind});
    ends_.emplace_back(from, to);
  }
}

/// Plugs NICs into leaves: those of a node into one, or one rail each.
void FabricGraph::plug(std::int64_t nodes, const std::vector<VertexId>& leaves, bool rails) {
  for (std::int64_t node = 0; node < nodes; ++node) {
    const std::int64_t group = node / spec_.fabric.nodes_per_leaf;
    for (std::int64_t nic = 0; nic < spec_.nics_per_node; ++nic) {
      ports_.push_back(leaves[static_cast<std::size_t>(rails ? group * spec_.nics_per_node + nic : group)]);
    }
  }
}

/// Switches above a layer whose switches have `each` bandwidth from below. Ideally spread, they are one; else
/// each switch below has one cable, as fast as a NIC's or nearly, to each switch above.
FabricGraph::Layer FabricGraph::add_layer_above(const std::vector<VertexId>& below, BytesPerSecond each,
                                                double oversubscription, VertexKind kind) {
  const bool ecmp = spec_.fabric.spreading == Spreading::kEcmp;
  const BytesPerSecond up = each / oversubscription;
  const std::int64_t cables =
      ecmp ? std::max<std::int64_t>(1, std::llround(up / spec_.nic.effective_bandwidth())) : 1;
  const bool can_bind = ecmp || oversubscription > 1.0 || spec_.fabric.background_load > 0;
  Layer layer;
  layer.below = up * static_cast<double>(below.size());
  for (std::int64_t i = 0; i < cables; ++i) {
    layer.switches.push_back(add(kind, count(kind)));
    for (const VertexId lower : below)
      connect(lower, layer.switches.back(), up / static_cast<double>(cables), can_bind);
  }
  return layer;
}

void FabricGraph::add_tree(std::int64_t nodes) {
  const FabricSpec& fabric = spec_.fabric;
  const bool rails = fabric.kind != FabricKind::kFatTree;
  const std::int64_t per_group = rails ? spec_.nics_per_node : 1;
  std::vector<VertexId> leaves(static_cast<std::size_t>(parts(nodes, fabric.nodes_per_leaf) * per_group));
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
    leaves[leaf] = add(VertexKind::kLeaf, static_cast<std::int64_t>(leaf));
  plug(nodes, leaves, rails);
  height_ = 1;
  // Planes are parts that no switch connects: one per rail in a rail-only fabric.
  const std::int64_t planes = fabric.kind == FabricKind::kRailOnly ? per_group : 1;
  if (static_cast<std::int64_t>(leaves.size()) <= planes) return;
  height_ = 3;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    std::vector<VertexId> own;
    for (auto leaf = static_cast<std::size_t>(plane); leaf < leaves.size();
         leaf += static_cast<std::size_t>(planes)) {
      own.push_back(leaves[leaf]);
    }
    add_plane(own, per_group / planes);
  }
}

/// Spines above leaves, of which `per_group` belong together, and cores above the spines of several pods.
void FabricGraph::add_plane(const std::vector<VertexId>& leaves, std::int64_t per_group) {
  const FabricSpec& fabric = spec_.fabric;
  const bool ecmp = fabric.spreading == Spreading::kEcmp;
  const double nics_per_leaf = static_cast<double>(
      fabric.nodes_per_leaf * (fabric.kind == FabricKind::kFatTree ? spec_.nics_per_node : 1));
  std::size_t per_pod = leaves.size();
  if (fabric.nodes_per_pod > 0) {
    const std::int64_t groups = std::max<std::int64_t>(1, fabric.nodes_per_pod / fabric.nodes_per_leaf);
    per_pod = static_cast<std::size_t>(groups * per_group);
  }
  std::vector<Layer> pods;
  for (std::size_t first = 0; first < leaves.size(); first += per_pod) {
    const auto begin = leaves.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = leaves.begin() + static_cast<std::ptrdiff_t>(std::min(leaves.size(), first + per_pod));
    pods.push_back(add_layer_above({begin, end}, nics_per_leaf * spec_.nic.effective_bandwidth(),
                                   fabric.oversubscription,
                                   ecmp ? VertexKind::kSpine : VertexKind::kSpineLayer));
  }
  if (pods.size() < 2) return;
  height_ = 5;
  // Spine i of each pod reaches the same cores.
  const std::size_t spines = pods.front().switches.size();
  for (std::size_t i = 0; i < spines; ++i) {
    std::vector<VertexId> below(pods.size());
    std::transform(pods.begin(), pods.end(), below.begin(),
                   [i](const Layer& pod) { return pod.switches[i]; });
    add_layer_above(below, pods.front().below / static_cast<double>(spines), fabric.pod_oversubscription,
                    ecmp ? VertexKind::kCore : VertexKind::kCoreLayer);
  }
}

void FabricGraph::add_dragonfly(std::int64_t nodes) {
  const FabricSpec& fabric = spec_.fabric;
  const std::int64_t routers = parts(nodes, fabric.nodes_per_leaf);
  for (std::int64_t router = 0; router < routers; ++router) add(VertexKind::kRouter, router);
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t nic = 0; nic < spec_.nics_per_node; ++nic)
      ports_.push_back(static_cast<std::size_t>(node / fabric.nodes_per_leaf));
  }
  const std::int64_t per_group = fabric.routers_per_group;
  for (std::int64_t a = 0; a < routers; ++a) {
    for (std::int64_t b = a + 1; b < std::min(routers, (a / per_group + 1) * per_group); ++b)
      connect(static_cast<VertexId>(a), static_cast<VertexId>(b), fabric.local_bandwidth, true);
  }
  const std::int64_t groups = parts(routers, per_group);
  for (std::int64_t a = 0; a < groups; ++a) {
    for (std::int64_t b = a + 1; b < groups; ++b)
      connect(gateway(a, b), gateway(b, a), fabric.global_bandwidth, true);
  }
}

/// The cable from group a to group b leaves a at router b and arrives at router a, modulo their number.
FabricGraph::VertexId FabricGraph::gateway(std::int64_t group, std::int64_t other) const {
  const std::int64_t per_group = spec_.fabric.routers_per_group;
  const std::int64_t routers = count(VertexKind::kRouter);
  const std::int64_t size = std::min(per_group, routers - group * per_group);
  return static_cast<VertexId>(group * per_group + other % size);
}

void FabricGraph::add_torus(std::int64_t nodes) {
  const std::vector<std::int64_t>& dimensions = spec_.fabric.dimensions;
  const std::int64_t size =
      std::accumulate(dimensions.begin(), dimensions.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t node = 0; node < size; ++node) add(VertexKind::kRouter, node);
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t nic = 0; nic < spec_.nics_per_node; ++nic)
      ports_.push_back(static_cast<std::size_t>(node));
  }
  std::int64_t stride = 1;
  for (const std::int64_t length : dimensions) {
    for (std::int64_t node = 0; node < size; ++node) {
      const std::int64_t at = node / stride % length;
      const std::int64_t next = node + ((at + 1) % length - at) * stride;
      // Two nodes in a dimension have one cable, not two.
      if (length > 2 || (length == 2 && at == 0))
        connect(static_cast<VertexId>(node), static_cast<VertexId>(next), spec_.fabric.link_bandwidth, true);
    }
    stride *= length;
  }
}

std::int64_t FabricGraph::count(VertexKind kind) const {
  const auto [begin, end] = boost::vertices(graph_);
  return std::count_if(begin, end, [&](VertexId vertex) { return graph_[vertex].kind == kind; });
}

/// Every cable has two directions, so hops to a switch are hops from it.
const FabricGraph::Distances& FabricGraph::distances_to(std::size_t to) const {
  const auto known = distances_.find(to);
  if (known != distances_.end()) return known->second;
  Distances& distances = distances_[to];
  distances.assign(boost::num_vertices(graph_), kUnreachable);
  distances[to] = 0;
  boost::breadth_first_search(graph_, to,
                              boost::visitor(boost::make_bfs_visitor(
                                  boost::record_distances(distances.data(), boost::on_tree_edge()))));
  return distances;
}

bool FabricGraph::connects(std::size_t from, std::size_t to) const {
  if (!spec_.fabric.is_tree()) return true;
  return distances_to(to)[from] != kUnreachable;
}

const std::vector<std::uint32_t>& FabricGraph::path(std::size_t from, std::size_t to,
                                                    std::uint64_t flow) const {
  const bool hashed = spec_.fabric.spreading == Spreading::kEcmp;
  const auto [entry, added] = paths_.try_emplace({from, to, hashed ? flow : 0});
  if (!added) return entry->second;
  switch (spec_.fabric.kind) {
    case FabricKind::kDragonfly:
      entry->second = dragonfly_path(from, to);
      break;
    case FabricKind::kTorus:
      entry->second = torus_path(from, to);
      break;
    default:
      entry->second = find_path(from, to, flow);
  }
  return entry->second;
}

std::uint32_t FabricGraph::cable(std::size_t from, std::size_t to) const {
  return graph_[boost::edge(from, to, graph_).first];
}

/// At most one cable between groups: to the router that has it, over it, and on from there.
std::vector<std::uint32_t> FabricGraph::dragonfly_path(std::size_t from, std::size_t to) const {
  const auto per_group = static_cast<std::size_t>(spec_.fabric.routers_per_group);
  const auto a = static_cast<std::int64_t>(from / per_group);
  const auto b = static_cast<std::int64_t>(to / per_group);
  std::vector<std::size_t> way = {from};
  if (a != b) way.insert(way.end(), {gateway(a, b), gateway(b, a)});
  way.push_back(to);
  std::vector<std::uint32_t> links;
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    if (way[i] != way[i + 1]) links.push_back(cable(way[i], way[i + 1]));
  }
  return links;
}

/// Dimension by dimension, each the shorter way round; where both are as long, half of the places go each
/// way.
std::vector<std::uint32_t> FabricGraph::torus_path(std::size_t from, std::size_t to) const {
  std::vector<std::uint32_t> links;
  auto at = static_cast<std::int64_t>(from);
  std::int64_t stride = 1;
  for (const std::int64_t length : spec_.fabric.dimensions) {
    const std::int64_t goal = static_cast<std::int64_t>(to) / stride % length;
    const std::int64_t ahead = (goal - at / stride % length + length) % length;
    const bool tie = 2 * ahead == length;
    const bool forward = tie ? at / stride % length % 2 == 0 : 2 * ahead < length;
    const std::int64_t step = forward ? 1 : length - 1;
    while (at / stride % length != goal) {
      const std::int64_t place = at / stride % length;
      const std::int64_t next = at + ((place + step) % length - place) * stride;
      links.push_back(cable(static_cast<std::size_t>(at), static_cast<std::size_t>(next)));
      at = next;
    }
    stride *= length;
  }
  return links;
}

std::vector<std::uint32_t> FabricGraph::find_path(std::size_t from, std::size_t to,
                                                  std::uint64_t flow) const {
  const Distances& left = distances_to(to);
  std::vector<std::uint32_t> links;
  for (std::size_t at = from; at != to;) {
    std::vector<Graph::edge_descriptor> closer;
    for (auto [edge, end] = boost::out_edges(at, graph_); edge != end; ++edge) {
      if (left[boost::target(*edge, graph_)] + 1 == left[at]) closer.push_back(*edge);
    }
    const bool hashed = spec_.fabric.spreading == Spreading::kEcmp;
    const std::uint64_t pick =
        hashed ? scramble(scramble(flow + scramble(spec_.fabric.seed)) + at) % closer.size() : 0;
    links.push_back(graph_[closer[pick]]);
    at = boost::target(closer[pick], graph_);
  }
  return links;
}

Seconds FabricGraph::latency(std::size_t from, std::size_t to) const {
  const auto switches =
      height_ > 0 ? static_cast<double>(height_) : static_cast<double>(path(from, to, 0).size()) + 1.0;
  return switches * spec_.fabric.switch_latency;
}

}  // namespace trainsim::hardware
