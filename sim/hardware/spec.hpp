// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/collective.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/vertex.hpp"

namespace trainsim::hardware {

/// A GPU and the constants that turn shapes into seconds. Every constant is per GPU type, never per run.
struct GpuSpec {
  std::string name;
  /// Memory that the driver reports as total.
  Bytes memory = 0;
  /// Peak bandwidth of the GPU's memory.
  BytesPerSecond memory_bandwidth = 0;
  /// Fraction of memory_bandwidth that streaming kernels reach, in (0, 1].
  double memory_efficiency = 0;
  /// Fraction of memory_bandwidth that kernels reach which draw a random number per element (dropout), in (0,
  /// 1].
  double random_efficiency = 0;
  /// The same of kernels that put rows in another order (tokens and their experts), in (0, 1]; 0 = as
  /// streaming ones.
  double permute_efficiency = 0;
  /// Dense (no sparsity) matrix peaks by precision; 0 where the GPU lacks the precision.
  FlopsPerSecond peak_fp32 = 0;
  FlopsPerSecond peak_tf32 = 0;
  FlopsPerSecond peak_fp16 = 0;
  FlopsPerSecond peak_bf16 = 0;
  FlopsPerSecond peak_fp8 = 0;
  /// Fraction of the peak that the best matrix-multiply shape reaches, in (0, 1].
  double matmul_efficiency = 0;
  /// The same of multiplies in 8 bits; 0 = as of the others.
  double fp8_matmul_efficiency = 0;
  /// Inner dimension at which a matrix multiply loses half of its efficiency to prologue and epilogue.
  double matmul_half_k = 0;
  /// Output tile that one SM computes at a time, rows and columns.
  std::int64_t tile_m = 128;
  std::int64_t tile_n = 256;
  /// Streaming multiprocessors: tiles are computed in waves of this many.
  std::int64_t multiprocessors = 0;
  /// Multiprocessors that a running collective takes away from compute beside it.
  std::int64_t communication_multiprocessors = 0;
  /// Fraction of the peak that fused attention reaches with long sequences and heads of 128, in (0, 1], of
  /// the operations that it executes: two multiplies forward and five backward, halved by the causal mask.
  double attention_efficiency_forward = 0;
  double attention_efficiency_backward = 0;
  /// Speed of the second and of the first generation of fused attention kernels relative to these, in (0, 1].
  double flash_2_efficiency = 1.0;
  double flash_1_efficiency = 1.0;
  /// Time that a call of fused attention takes beyond its kernel.
  Seconds attention_overhead = 0;
  /// Shortest time between the start of two dependent kernels on the GPU, however small they are.
  Seconds kernel_overhead = 0;
  /// Time the host needs to launch one kernel from eager PyTorch.
  Seconds launch_interval_eager = 0;
  /// Time that a library needs to launch one of many multiplies that it is given at once (those of experts).
  Seconds group_launch_interval = 0;
  /// The same as launch_interval_eager for compiled models, and for replayed CUDA graphs.
  Seconds launch_interval_compiled = 0;
  Seconds launch_interval_graph = 0;
  /// Power of the whole GPU at which its efficiencies were measured (its rated power), the part of it that
  /// does not depend on the clock, and what it may draw at most; all 0 where nothing is known.
  Watts rated_power = 0;
  Watts static_power = 0;
  Watts power_limit = 0;

  /// Clock that the power limit leaves, as a share of the clock at the rated power, in (0, 1]: what is left
  /// after static power goes with the cube of the clock, because the voltage follows it.
  double clock_share() const;
};

/// One kind of connection. All numbers are per direction.
struct LinkSpec {
  /// Data-sheet bandwidth of one direction.
  BytesPerSecond bandwidth = 0;
  /// Fraction of it that collectives reach with large messages, in (0, 1].
  double efficiency = 1.0;
  /// Time for a message to cross the link once, software included: of a ring step of NCCL's Simple protocol.
  Seconds latency = 0;
  /// The same with the LL and the LL128 protocol, for small messages; 0 where there is none. Between nodes
  /// LL128 is not used.
  Seconds ll_latency = 0;
  Seconds ll128_latency = 0;
  /// Most that a GPU sends with LL.
  BytesPerSecond ll_bandwidth = 0;
  /// Share of a member's data that each phase of a ring moves once more at its end (copy out of the last
  /// step's buffer).
  double phase_copy = 0;
  /// Rate of a GPU when the switch adds up what all members send (NVLink SHARP); 0 where it can't.
  BytesPerSecond nvls_bandwidth = 0;
  /// As `efficiency`, of all-to-alls inside a node; 0 where it is not known to be another.
  double all_to_all_efficiency = 0;

  /// What a flow can really get.
  BytesPerSecond effective_bandwidth() const { return bandwidth * efficiency; }
  /// Bytes of other traffic in whose time an all-to-all moves one.
  double all_to_all_inflation() const {
    return all_to_all_efficiency > 0 ? efficiency / all_to_all_efficiency : 1.0;
  }
};

/// How the GPUs of a node reach each other.
enum class IntraNodeKind {
  /// Every GPU has one port into a non-blocking switch (NVSwitch).
  kSwitch,
  /// GPUs hang under one PCIe root, or under the PCIe switches of one or several CPU sockets (`PcieTree`);
  /// traffic between them shares each GPU's PCIe port and what is above it.
  kPcie,
  /// GPUs are cabled to each other: each with each, or as `ClusterSpec::mesh` lists.
  kMesh,
  /// As `ClusterSpec::node_links` lists.
  kLinks,
};

/// A connection inside a node of kind kLinks, of the same bandwidth in both directions.
struct NodeLink {
  Vertex first;
  Vertex second;
  /// Effective, of all cables together.
  BytesPerSecond bandwidth = 0;
  /// Between two GPUs: cables that carry a ring each.
  std::int64_t cables = 1;
};

/// PCIe switches and CPU sockets of a node of kind kPcie. With gpus_per_switch 0 there is a single root.
struct PcieTree {
  std::int64_t gpus_per_switch = 0;
  std::int64_t sockets = 1;
  /// From a switch to its socket, and from one socket to another, effective, per direction.
  BytesPerSecond uplink_bandwidth = 0;
  BytesPerSecond socket_bandwidth = 0;
  /// Whether GPUs can reach each other below a switch; without, their traffic goes through the memory of a
  /// CPU.
  bool peer_to_peer = true;
};

/// Cables between two GPUs of a node of kind kMesh.
struct MeshLink {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t cables = 1;
};

/// How nodes reach each other.
enum class FabricKind {
  /// Every NIC of a node connects to the node's leaf switch; leaves connect to a spine layer, spine layers of
  /// pods to a core layer.
  kFatTree,
  /// NIC i of each node connects to rail leaf i of its group of nodes; leaves connect to a spine layer.
  kRailOptimized,
  /// The same, but each rail has a spine layer of its own and nothing connects rails: traffic to another rail
  /// first crosses the node to the GPU on that rail.
  kRailOnly,
  /// Routers connected each with each in groups, and groups each with each.
  kDragonfly,
  /// Every node has a router with cables to its neighbours in each dimension.
  kTorus,
};

/// How a fat tree or rails use several equal paths.
enum class Spreading {
  /// Traffic is spread evenly over all of them.
  kIdeal,
  /// Every flow stays on one, picked by a hash of its ends (ECMP).
  kEcmp,
};

/// The switches between nodes. Bandwidth that switches offer upwards follows from the NICs below them.
struct FabricSpec {
  FabricKind kind = FabricKind::kFatTree;
  /// Nodes below one leaf (fat tree) or below one group of rail leaves; nodes at one router (dragonfly).
  std::int64_t nodes_per_leaf = 0;
  /// Bandwidth that enters a leaf from below over what it has upwards; 1 is full bisection.
  double oversubscription = 1.0;
  /// Nodes of a pod, whose leaves share spines; 0 = all nodes are one pod.
  std::int64_t nodes_per_pod = 0;
  /// The same ratio for the spine layer of a pod.
  double pod_oversubscription = 1.0;
  /// Share of the bandwidth between switches that other jobs take, in [0, 1).
  double background_load = 0;
  Spreading spreading = Spreading::kIdeal;
  /// Of the hash that spreads flows.
  std::uint64_t seed = 0;
  /// Latency of one switch-to-switch hop.
  Seconds switch_latency = 0;
  /// Whether switches add up what passes through them in an all-reduce (SHARP), and NCCL lets them.
  bool in_network_reduction = false;
  /// Nodes that switches of a given radix can connect; 0 = any number.
  std::int64_t max_nodes = 0;
  /// Dragonfly: routers in a group; effective bandwidth between two routers of a group and between two
  /// groups.
  std::int64_t routers_per_group = 0;
  BytesPerSecond local_bandwidth = 0;
  BytesPerSecond global_bandwidth = 0;
  /// Torus: nodes in each dimension, and effective bandwidth between neighbours.
  std::vector<std::int64_t> dimensions;
  BytesPerSecond link_bandwidth = 0;

  /// Whether it has leaves and spines.
  bool is_tree() const;
  /// Whether nothing between the leaves can limit a flow: full bisection, ideally spread, and all ours.
  bool is_non_blocking() const;
};

/// What a fault hits.
enum class FaultPlace {
  /// A NIC; failed, its GPUs use the next one of their node.
  kNic,
  /// A GPU's port into its node.
  kGpuPort,
  /// The cables from a leaf switch upwards.
  kLeafUplinks,
};

/// A part of the network that works worse than it should.
struct Fault {
  FaultPlace place = FaultPlace::kNic;
  /// Number of the NIC, GPU or leaf in the whole cluster.
  std::int64_t index = 0;
  /// Share of its bandwidth that is left, in (0, 1]; 0 = it is gone, which only a NIC may be.
  double bandwidth = 1.0;
};

/// A GPU that runs slower than its type, by a factor on its compute times (>= 1).
struct SlowGpu {
  /// Global rank of the GPU.
  std::int64_t gpu = 0;
  double slowdown = 1.0;
};

/// A node's CPUs, their memory and disks, as far as training uses them when state is offloaded.
struct HostSpec {
  Bytes memory = 0;
  /// Data-sheet bandwidth of all memory channels, and the share of it that an optimizer on the CPUs reaches,
  /// in (0, 1].
  BytesPerSecond memory_bandwidth = 0;
  double memory_efficiency = 1.0;
  /// Between one GPU and the CPUs, and between all GPUs of the node and the CPUs together; data-sheet
  /// bandwidth of one direction, and the share of both that large copies reach.
  BytesPerSecond pcie_bandwidth = 0;
  BytesPerSecond uplink_bandwidth = 0;
  double pcie_efficiency = 1.0;
  /// What all disks of the node read and write together; 0 = there are none.
  BytesPerSecond nvme_read_bandwidth = 0;
  BytesPerSecond nvme_write_bandwidth = 0;

  /// What each of `gpus` of a node gets of a direction when all copy at once.
  BytesPerSecond copy_rate(std::int64_t gpus) const;
};

/// A cluster of equal nodes.
struct ClusterSpec {
  std::string name;
  GpuSpec gpu;
  std::int64_t gpus_per_node = 0;
  /// NICs of a node; GPU g uses NIC g * nics_per_node / gpus_per_node. 0 only for single-node clusters.
  std::int64_t nics_per_node = 0;
  IntraNodeKind intra_node_kind = IntraNodeKind::kSwitch;
  /// From a GPU to the switch or PCIe root of its node, or along one cable of a mesh.
  LinkSpec intra_node;
  PcieTree pcie_tree;
  /// Cables of a mesh; empty = one between each two GPUs.
  std::vector<MeshLink> mesh;
  std::vector<NodeLink> node_links;
  /// From a GPU to its NIC.
  LinkSpec pcie;
  /// From a NIC to its leaf switch.
  LinkSpec nic;
  /// Needed for offloading only.
  std::optional<HostSpec> host;
  FabricSpec fabric;
  /// Fixed cost of starting a collective on the GPU (kernel launch and protocol set-up).
  Seconds collective_latency = 0;
  /// The same for a point-to-point message.
  Seconds point_to_point_latency = 0;
  /// Algorithm and protocol of collectives that can use them, as NCCL_ALGO and NCCL_PROTO force them;
  /// without, the fastest is taken.
  std::optional<Algorithm> forced_algorithm;
  std::optional<WireProtocol> forced_protocol;
  /// Largest number of GPUs that exist; 0 when the cluster can be grown freely.
  std::int64_t max_gpus = 0;
  std::vector<SlowGpu> slow_gpus;
  std::vector<Fault> faults;

  /// Nodes that a job of so many GPUs takes.
  std::int64_t nodes_of(std::int64_t gpus) const { return (gpus + gpus_per_node - 1) / gpus_per_node; }
  /// What a GPU can send inside a node to the others of a communicator of `members` there, together.
  BytesPerSecond bandwidth_within(std::int64_t members) const;
};

}  // namespace trainsim::hardware
