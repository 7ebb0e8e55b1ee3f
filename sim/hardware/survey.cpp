// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/survey.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

namespace trainsim::hardware {

namespace {

/// Graph of the switches with a source before the first half of the nodes and a sink behind the second.
/// Capacities are whole bytes per second, for which the algorithm is exact.
class HalfToHalf {
 public:
  explicit HalfToHalf(std::size_t switches)
      : capacity_(boost::get(boost::edge_capacity, graph_)),
        reverse_(boost::get(boost::edge_reverse, graph_)) {
    for (std::size_t i = 0; i < switches + 2; ++i) boost::add_vertex(graph_);
    source_ = switches;
    sink_ = switches + 1;
  }

  void add(std::size_t from, std::size_t to, BytesPerSecond bandwidth) {
    const auto there = boost::add_edge(from, to, graph_).first;
    const auto back = boost::add_edge(to, from, graph_).first;
    capacity_[there] = std::llround(bandwidth);
    capacity_[back] = 0;
    reverse_[there] = back;
    reverse_[back] = there;
  }
  void add_sender(std::size_t to, BytesPerSecond bandwidth) { add(source_, to, bandwidth); }
  void add_receiver(std::size_t from, BytesPerSecond bandwidth) { add(from, sink_, bandwidth); }
  BytesPerSecond flow() { return static_cast<double>(boost::push_relabel_max_flow(graph_, source_, sink_)); }

 private:
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Graph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<boost::edge_capacity_t, std::int64_t,
                      boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                      boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  Graph graph_;
  boost::property_map<Graph, boost::edge_capacity_t>::type capacity_;
  boost::property_map<Graph, boost::edge_reverse_t>::type reverse_;
  std::size_t source_ = 0;
  std::size_t sink_ = 0;
};

void add_bisection(const Topology& topology, const ClusterSpec& spec, Survey& survey) {
  const FabricGraph& fabric = topology.fabric();
  HalfToHalf graph(fabric.switch_count());
  std::map<std::size_t, BytesPerSecond> senders;
  std::map<std::size_t, BytesPerSecond> receivers;
  for (std::int64_t nic = 0; nic < survey.nodes * spec.nics_per_node; ++nic) {
    const bool first_half = nic / spec.nics_per_node < survey.nodes / 2;
    const BytesPerSecond bandwidth = topology.nic_bandwidth(nic);
    (first_half ? senders : receivers)[fabric.switch_of(nic)] += bandwidth;
    if (first_half) survey.injection += bandwidth;
  }
  for (const auto& [at, bandwidth] : senders) graph.add_sender(at, bandwidth);
  for (const auto& [at, bandwidth] : receivers) graph.add_receiver(at, bandwidth);
  for (std::size_t i = 0; i < fabric.links().size(); ++i) {
    const auto [from, to] = fabric.ends(i);
    graph.add(from, to, topology.fabric_bandwidth(i));
  }
  survey.bisection = graph.flow();
}

Distance distance(const Topology& topology, std::int64_t gpu) {
  const Route route = topology.walk(0, gpu);
  Distance found{1, gpu, {{VertexKind::kGpu, 0}}, route.latency, std::numeric_limits<double>::infinity(), ""};
  for (const std::uint32_t link : route.links) {
    found.way.push_back(topology.link(link).to);
    if (topology.bandwidth(link) >= found.bandwidth) continue;
    found.bandwidth = topology.bandwidth(link);
    found.slowest = topology.link_name(link);
  }
  return found;
}

void add_distances(const Topology& topology, std::int64_t gpus, Survey& survey) {
  std::map<std::tuple<std::vector<VertexKind>, double, double>, std::size_t> known;
  for (std::int64_t gpu = 1; gpu < gpus; ++gpu) {
    Distance found = distance(topology, gpu);
    std::vector<VertexKind> kinds;
    for (const Vertex& vertex : found.way) kinds.push_back(vertex.kind);
    const auto [entry, added] =
        known.try_emplace({kinds, found.bandwidth, found.latency}, survey.distances.size());
    if (added) {
      survey.distances.push_back(std::move(found));
    } else {
      ++survey.distances[entry->second].gpus;
    }
  }
  std::stable_sort(survey.distances.begin(), survey.distances.end(),
                   [](const Distance& a, const Distance& b) { return a.way.size() < b.way.size(); });
}

void add_blocks(const Topology& topology, const ClusterSpec& spec, Survey& survey) {
  for (std::int64_t node = 0; node < survey.nodes; ++node) {
    std::vector<std::size_t> switches;
    for (std::int64_t nic = 0; survey.nodes > 1 && nic < spec.nics_per_node; ++nic)
      switches.push_back(topology.fabric().switch_of(node * spec.nics_per_node + nic));
    std::sort(switches.begin(), switches.end());
    switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
    if (survey.blocks.empty() || survey.blocks.back().switches != switches) {
      survey.blocks.push_back({node, 1, switches});
    } else {
      ++survey.blocks.back().nodes;
    }
  }
}

}  // namespace

Survey survey(const Topology& topology, const ClusterSpec& spec, std::int64_t gpus) {
  Survey survey;
  survey.nodes = topology.nodes();
  if (survey.nodes > 1) add_bisection(topology, spec, survey);
  add_distances(topology, gpus, survey);
  add_blocks(topology, spec, survey);
  return survey;
}

}  // namespace trainsim::hardware
