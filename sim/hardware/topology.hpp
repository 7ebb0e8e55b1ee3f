// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/hardware/fabric_graph.hpp"
#include "sim/hardware/node_graph.hpp"
#include "sim/hardware/spec.hpp"

namespace trainsim::hardware {

/// Links from one GPU to another that can limit a flow, in order, and the latency of the whole way. Uplinks
/// of a fabric without oversubscription are left out: they carry all that the NICs below them can send.
struct Route {
  std::vector<std::uint32_t> links;
  Seconds latency = 0;
};

/// The GPUs, switches and NICs of a cluster, with routes computed from the graphs of its nodes and its
/// fabric. Links are numbered node by node, then NIC by NIC (up, then down), then as the fabric numbers them.
class Topology {
 public:
  /// Builds the nodes that hold `gpus` GPUs. REQUIRES: a spec that plan::check accepts.
  Topology(const ClusterSpec& spec, std::int64_t gpus);

  /// Path between two different GPUs: the fastest inside a node, else over the NICs that the GPUs use and a
  /// shortest path of the fabric. It passes through a third GPU only where a rail-only fabric or a lost NIC
  /// leaves no other way. Throws std::logic_error when there is none.
  Route route(std::int64_t source_gpu, std::int64_t target_gpu) const;
  /// The same with all links, also those that can't limit a flow.
  Route walk(std::int64_t source_gpu, std::int64_t target_gpu) const;
  /// Directed links, counting each direction of a cable.
  std::size_t link_count() const { return bandwidth_.size(); }
  /// Effective bandwidth of a link.
  BytesPerSecond bandwidth(std::uint32_t link) const { return bandwidth_[link]; }
  /// The same of a NIC's cable, and of a link between switches as the fabric numbers it.
  BytesPerSecond nic_bandwidth(std::int64_t nic) const {
    return works(nic) ? bandwidth_[first_nic_link() + 2 * static_cast<std::size_t>(nic)] : 0.0;
  }
  BytesPerSecond fabric_bandwidth(std::size_t link) const { return bandwidth_[first_fabric_link() + link]; }
  /// Name for people, such as "gpu 3 -> node switch 0".
  std::string link_name(std::uint32_t link) const;
  /// Ends and properties of a link.
  DirectedLink link(std::uint32_t link) const;
  /// Node that holds a GPU.
  std::int64_t node_of(std::int64_t gpu) const { return gpu / spec_.gpus_per_node; }
  std::int64_t nodes() const { return nodes_; }
  /// NIC that a GPU uses: its own share of the node's, or the next one that works.
  std::int64_t nic_of(std::int64_t gpu) const;
  const NodeGraph& node() const { return node_; }
  const FabricGraph& fabric() const { return fabric_; }

 private:
  std::size_t first_nic_link() const { return static_cast<std::size_t>(nodes_) * node_.links().size(); }
  std::size_t first_fabric_link() const { return first_nic_link() + 2 * static_cast<std::size_t>(nics()); }
  std::int64_t nics() const { return nodes_ > 1 ? nodes_ * spec_.nics_per_node : 0; }
  bool works(std::int64_t nic) const;
  void apply(const Fault& fault);
  void weaken(std::size_t first, std::size_t count, const Fault& fault);
  void weaken_port(const Fault& fault);
  bool can_bind(std::uint32_t link) const;
  void append_node_path(std::int64_t node, const Vertex& from, const Vertex& to, Route& route) const;
  void append_network_path(std::int64_t source_gpu, std::int64_t target_gpu, Route& route) const;
  /// The GPU through which another reaches a NIC that is not its own: itself where the node has a way, else
  /// one that the NIC belongs to (NCCL's PXN).
  std::int64_t relay(std::int64_t gpu, std::int64_t nic) const;
  /// NICs over which two GPUs of different nodes talk: their own, or two of one rail where nothing else
  /// connects rails.
  std::pair<std::int64_t, std::int64_t> nics_between(std::int64_t source_gpu, std::int64_t target_gpu) const;

  ClusterSpec spec_;
  std::int64_t nodes_ = 0;
  NodeGraph node_;
  FabricGraph fabric_;
  std::vector<BytesPerSecond> bandwidth_;
  std::unordered_set<std::int64_t> lost_nics_;
  /// Of the GPUs of a node.
  std::vector<std::int64_t> own_nics_;
};

}  // namespace trainsim::hardware
