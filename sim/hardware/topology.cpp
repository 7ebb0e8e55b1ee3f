// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/topology.hpp"

#include <algorithm>
#include <stdexcept>

namespace trainsim::hardware {

Topology::Topology(const ClusterSpec& spec, std::int64_t gpus)
    : spec_(spec), nodes_(spec.nodes_of(gpus)), node_(spec), fabric_(spec, nodes_) {
  for (std::int64_t gpu = 0; gpu < spec.gpus_per_node && nodes_ > 1; ++gpu)
    own_nics_.push_back(node_.nearest_nic(gpu));
  for (std::int64_t node = 0; node < nodes_; ++node) {
    for (const DirectedLink& link : node_.links()) bandwidth_.push_back(link.bandwidth);
  }
  bandwidth_.insert(bandwidth_.end(), 2 * static_cast<std::size_t>(nics()), spec.nic.effective_bandwidth());
  for (const DirectedLink& link : fabric_.links()) bandwidth_.push_back(link.bandwidth);
  for (const Fault& fault : spec.faults) apply(fault);
}

/// A fault beyond the nodes in use hits nobody.
void Topology::apply(const Fault& fault) {
  if (fault.bandwidth <= 0) {
    lost_nics_.insert(fault.index);
    return;
  }
  switch (fault.place) {
    case FaultPlace::kNic:
      if (fault.index < nics())
        weaken(first_nic_link() + 2 * static_cast<std::size_t>(fault.index), 2, fault);
      break;
    case FaultPlace::kGpuPort:
      if (node_of(fault.index) < nodes_) weaken_port(fault);
      break;
    case FaultPlace::kLeafUplinks:
      for (std::size_t link = 0; link < fabric_.links().size(); ++link) {
        const DirectedLink& at = fabric_.links()[link];
        const Vertex leaf{VertexKind::kLeaf, fault.index};
        if (at.from == leaf || at.to == leaf) weaken(first_fabric_link() + link, 1, fault);
      }
      break;
  }
}

void Topology::weaken(std::size_t first, std::size_t count, const Fault& fault) {
  for (std::size_t link = first; link < first + count; ++link) bandwidth_[link] *= fault.bandwidth;
}

void Topology::weaken_port(const Fault& fault) {
  const std::size_t first = static_cast<std::size_t>(node_of(fault.index)) * node_.links().size();
  const Vertex gpu{VertexKind::kGpu, fault.index % spec_.gpus_per_node};
  for (std::size_t link = 0; link < node_.links().size(); ++link) {
    const DirectedLink& at = node_.links()[link];
    const bool to_nic = at.from.kind == VertexKind::kNic || at.to.kind == VertexKind::kNic;
    if (!to_nic && (at.from == gpu || at.to == gpu)) weaken(first + link, 1, fault);
  }
}

bool Topology::works(std::int64_t nic) const {
  return !lost_nics_.contains(nic);
}

std::int64_t Topology::nic_of(std::int64_t gpu) const {
  const std::int64_t first = node_of(gpu) * spec_.nics_per_node;
  const std::int64_t own = own_nics_[static_cast<std::size_t>(gpu % spec_.gpus_per_node)];
  for (std::int64_t step = 0; step < spec_.nics_per_node; ++step) {
    const std::int64_t nic = first + (own + step) % spec_.nics_per_node;
    if (works(nic)) return nic;
  }
  throw std::logic_error("a node of a checked cluster has no NIC that works");
}

void Topology::append_node_path(std::int64_t node, const Vertex& from, const Vertex& to, Route& route) const {
  const auto base = static_cast<std::uint32_t>(static_cast<std::size_t>(node) * node_.links().size());
  const std::vector<std::uint32_t>& path = node_.path(from, to);
  if (path.empty()) throw std::logic_error("no path between two devices of a checked node");
  for (const std::uint32_t link : path) route.links.push_back(base + link);
  route.latency += node_.latency(from, to);
}

std::int64_t Topology::relay(std::int64_t gpu, std::int64_t nic) const {
  const Vertex own{VertexKind::kGpu, gpu % spec_.gpus_per_node};
  const Vertex used{VertexKind::kNic, nic % spec_.nics_per_node};
  if (!node_.path(own, used).empty()) return gpu;
  const auto owner = std::find(own_nics_.begin(), own_nics_.end(), used.index);
  return node_of(gpu) * spec_.gpus_per_node + (owner - own_nics_.begin());
}

std::pair<std::int64_t, std::int64_t> Topology::nics_between(std::int64_t source_gpu,
                                                             std::int64_t target_gpu) const {
  const std::int64_t out = nic_of(source_gpu);
  const std::int64_t in = nic_of(target_gpu);
  if (fabric_.connects(fabric_.switch_of(out), fabric_.switch_of(in))) return {out, in};
  for (std::int64_t step = 0; step < spec_.nics_per_node; ++step) {
    const std::int64_t rail = (in + step) % spec_.nics_per_node;
    const std::int64_t from = node_of(source_gpu) * spec_.nics_per_node + rail;
    const std::int64_t to = node_of(target_gpu) * spec_.nics_per_node + rail;
    if (works(from) && works(to)) return {from, to};
  }
  throw std::logic_error("no network between two nodes of a checked cluster");
}

void Topology::append_network_path(std::int64_t source_gpu, std::int64_t target_gpu, Route& route) const {
  const auto local_gpu = [this](std::int64_t gpu) {
    return Vertex{VertexKind::kGpu, gpu % spec_.gpus_per_node};
  };
  const auto local_nic = [this](std::int64_t nic) {
    return Vertex{VertexKind::kNic, nic % spec_.nics_per_node};
  };
  const auto [out, in] = nics_between(source_gpu, target_gpu);
  const std::size_t leave = fabric_.switch_of(out);
  const std::size_t arrive = fabric_.switch_of(in);
  const std::int64_t leaver = relay(source_gpu, out);
  if (leaver != source_gpu)
    append_node_path(node_of(source_gpu), local_gpu(source_gpu), local_gpu(leaver), route);
  append_node_path(node_of(source_gpu), local_gpu(leaver), local_nic(out), route);
  const auto nic_link = [this](std::int64_t nic, std::size_t direction) {
    return static_cast<std::uint32_t>(first_nic_link() + 2 * static_cast<std::size_t>(nic) + direction);
  };
  route.links.push_back(nic_link(out, 0));
  const std::uint64_t flow = static_cast<std::uint64_t>(out) << 32U | static_cast<std::uint64_t>(in);
  for (const std::uint32_t link : fabric_.path(leave, arrive, flow))
    route.links.push_back(static_cast<std::uint32_t>(first_fabric_link() + link));
  route.links.push_back(nic_link(in, 1));
  route.latency += spec_.nic.latency + fabric_.latency(leave, arrive);
  const std::int64_t comer = relay(target_gpu, in);
  append_node_path(node_of(target_gpu), local_nic(in), local_gpu(comer), route);
  if (comer != target_gpu)
    append_node_path(node_of(target_gpu), local_gpu(comer), local_gpu(target_gpu), route);
}

bool Topology::can_bind(std::uint32_t link) const {
  if (link < first_fabric_link()) return true;
  const DirectedLink& at = fabric_.links()[link - first_fabric_link()];
  return at.can_bind || bandwidth_[link] < at.bandwidth;
}

Route Topology::route(std::int64_t source_gpu, std::int64_t target_gpu) const {
  Route route = walk(source_gpu, target_gpu);
  std::erase_if(route.links, [this](std::uint32_t link) { return !can_bind(link); });
  return route;
}

Route Topology::walk(std::int64_t source_gpu, std::int64_t target_gpu) const {
  Route route;
  const auto gpu = [this](std::int64_t global) {
    return Vertex{VertexKind::kGpu, global % spec_.gpus_per_node};
  };
  const std::int64_t node = node_of(source_gpu);
  if (node == node_of(target_gpu)) {
    append_node_path(node, gpu(source_gpu), gpu(target_gpu), route);
    return route;
  }
  append_network_path(source_gpu, target_gpu, route);
  return route;
}

DirectedLink Topology::link(std::uint32_t link) const {
  if (link >= first_fabric_link()) return fabric_.links()[link - first_fabric_link()];
  if (link >= first_nic_link()) {
    const auto nic = static_cast<std::int64_t>((link - first_nic_link()) / 2);
    DirectedLink up{{VertexKind::kNic, nic},
                    fabric_.vertex(fabric_.switch_of(nic)),
                    spec_.nic.effective_bandwidth(),
                    spec_.nic.latency};
    if ((link - first_nic_link()) % 2 == 1) std::swap(up.from, up.to);
    return up;
  }
  const auto node = static_cast<std::int64_t>(link / node_.links().size());
  DirectedLink inside = node_.links()[link % node_.links().size()];
  for (Vertex* end : {&inside.from, &inside.to}) end->index += node * node_.count(end->kind);
  return inside;
}

std::string Topology::link_name(std::uint32_t id) const {
  const DirectedLink at = link(id);
  return to_string(at.from) + " -> " + to_string(at.to);
}

}  // namespace trainsim::hardware
