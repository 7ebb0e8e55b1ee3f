// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/protocols.hpp"

#include <algorithm>

namespace trainsim::folding {

namespace {

using program::Protocol;

/// NCCL's table of base latencies (src/graph/tuning.cc): LL 6.6 us in a ring and 6.8 in a tree, LL128 14,
/// Simple 8.4, NVLS 25, CollNet none. A cluster's collective_latency holds that of Simple.
constexpr Seconds kLlBase = -1.8e-6;
constexpr Seconds kTreeLlBase = -1.6e-6;
constexpr Seconds kLl128Base = 5.6e-6;
constexpr Seconds kNvlsBase = 16.6e-6;
constexpr Seconds kCollNetBase = -8.4e-6;

/// How much longer a step of a tree takes than one of a ring, from the same file: Simple inside a node (4.0
/// us for 3.4), LL between nodes (5.0 for 2.7).
constexpr Seconds kTreeStep = 0.6e-6;
constexpr Seconds kTreeLlNodeStep = 2.3e-6;

/// The same of the steps between nodes of an NVLS tree (20.9 us for 14), and of the way through the switches
/// that add up: NVLS 18 us, CollNet's direct algorithm 31, its chain 30.
constexpr Seconds kNvlsTreeNodeStep = 6.9e-6;
constexpr Seconds kNvlsNetworkStep = 4.0e-6;
constexpr Seconds kDirectNetworkStep = 17.0e-6;
constexpr Seconds kChainNetworkStep = 16.0e-6;

/// CollNet inside a node, from the same file: its direct algorithm takes one step each way, of 3.7 us for a
/// ring's 3.4, and 0.4 us for each other member; a chain one step for each, of 2.8 us.
constexpr Seconds kDirectStep = 0.3e-6;
constexpr Seconds kDirectMember = 0.4e-6;
constexpr Seconds kChainStep = -0.6e-6;
/// Most members of a node that it serves directly (NCCL_MAX_DIRECT_ARITY, src/include/device.h).
constexpr std::int64_t kMostForDirect = 8;
/// Bytes that CollNet moves inside nodes per byte of data: 110 GB/s of algorithm bandwidth on an A100 node
/// (nccl issue 320), of the 137 that its NVLinks would carry.
constexpr double kCollNetInflation = 1.25;

/// Share of the rate of its switch that a node keeps when it sends the sum to other nodes and gets theirs:
/// once each on two nodes and with switches that add up, more often in larger trees. NCCL's table lets a
/// channel of an NVLS tree carry 57.7 GB/s on two nodes and 45.5 on more on Hopper, 96 and 80 on Blackwell;
/// eight of them carry 0.85 to 0.9 and 0.7 of what NVLS does in a node of 8 (273 and 480 GB/s of algorithm
/// bandwidth). With switches that add up 480 GB/s of bus bandwidth were measured (nccl issue 1219), 0.9 too.
constexpr double kNvlsOnce = 0.9;
constexpr double kNvlsInTrees = 0.7;

/// Share of its links' rate that a tree reaches. On two nodes, whose network carries half of what a ring's
/// does: 57 GB/s of bus bandwidth measured on two A100 nodes with 45 GB/s of network each (nccl issue 837).
/// On more: what NCCL's table lets a channel carry (17.8 GB/s on Ampere, 36 on Hopper) of what an HDR or NDR
/// port does (22.5, 46); measured on 5 H100 nodes, 150 of 190 GB/s (nccl issue 1368). And by how much LL
/// lowers that.
constexpr double kTreeRateOnTwo = 0.68;
constexpr double kTreeRate = 0.78;
constexpr double kTreeLlInflation = 3.8;

/// Bytes on the wire of a chunk of a ring's channel, with Simple and with LL: an eighth of a buffer of 4 MiB,
/// and of one of 512 KiB, half of which are flags (NCCL, src/init.cc). Two channels share a NIC.
constexpr double kSimpleChunk = 524288;
constexpr double kLlChunk = 65536;
constexpr double kLlData = 0.5;
constexpr double kChannelsOfNic = 2;

/// Of every 128 bytes of LL128 8 are flags.
constexpr double kLl128Inflation = 128.0 / 120.0;

/// Time that reduction in switches needs to come to speed: with as many bytes as go through meanwhile it runs
/// at half of its rate. Fitted on all-reduces of 8 H200 (12 MiB at 306 GB/s).
constexpr Seconds kNvlsPipeline = 41e-6;

/// Members from which NCCL reduces in switches, as measured on 4 to 8 H200 (ml-engineering, network).
constexpr std::int64_t kFewestForNvls = 5;

/// Collects the protocols of one group.
class Choices {
 public:
  Choices(const hardware::ClusterSpec& cluster, std::int64_t size, std::int64_t nodes, Seconds inside,
          Seconds between)
      : cluster_(cluster), size_(size), nodes_(nodes), inside_(inside), between_(between) {}

  std::vector<Protocol> all() {
    add_rings();
    if (nodes_ > 1) {
      add_trees();
      if (has_nvls_heads()) add_nvls_tree();
      if (cluster_.fabric.in_network_reduction) add_in_network();
      if (cluster_.forced_algorithm == Algorithm::kHierarchical) add_hierarchical();
    } else if (link().nvls_bandwidth > 0 && size_ >= kFewestForNvls) {
      add_nvls(Algorithm::kInSwitch, 1.0, 0);
    }
    if (cluster_.forced_protocol) keep(*cluster_.forced_protocol);
    if (cluster_.forced_algorithm) prefer(*cluster_.forced_algorithm);
    return protocols_;
  }

 private:
  const hardware::LinkSpec& link() const { return cluster_.intra_node; }
  Seconds base() const { return cluster_.collective_latency; }
  /// Whether the links have LL; a group on several nodes needs it in both kinds.
  bool has_ll() const { return link().ll_bandwidth > 0 && (nodes_ == 1 || cluster_.nic.ll_bandwidth > 0); }
  BytesPerSecond ll_limit() const {
    return nodes_ == 1 ? link().ll_bandwidth : std::min(link().ll_bandwidth, cluster_.nic.ll_bandwidth);
  }
  static Seconds faster(Seconds latency, Seconds simple, Seconds other) {
    return std::max(0.0, latency - (simple - other));
  }
  Seconds ll_inside() const { return faster(inside_, link().latency, link().ll_latency); }
  Seconds ll_between() const { return faster(between_, cluster_.nic.latency, cluster_.nic.ll_latency); }
  /// Members in each node.
  std::int64_t local() const { return size_ / nodes_; }
  /// Whether nodes can reduce in their switch and send from two members at least, as NCCL's search for NVLS
  /// demands (src/graph/tuning.cc: two channels).
  bool has_nvls_heads() const {
    return link().nvls_bandwidth > 0 && local() > 1 && cluster_.nics_per_node > 1;
  }
  /// The copies at the end of a phase of a ring inside a node, as bytes on the wire.
  double local_copies() const {
    return local() > 1 ? 1.0 + link().phase_copy / static_cast<double>(local() - 1) : 1.0;
  }
  double copies() const { return nodes_ == 1 ? local_copies() : 1.0; }

  /// Chunks of a ring between nodes, with so much data for each byte on the wire, through all NICs that the
  /// group can use in each.
  void set_chunks(Protocol& protocol, double chunk, double data) const {
    if (nodes_ == 1) return;
    const auto nics = static_cast<double>(std::min(local(), cluster_.nics_per_node));
    protocol.chunk_bytes = kChannelsOfNic * nics * chunk * data;
    protocol.chunk_time = kChannelsOfNic * chunk / cluster_.nic.effective_bandwidth();
  }

  void add_rings() {
    protocols_.push_back({Algorithm::kRing, WireProtocol::kSimple, base(), inside_, between_, copies()});
    set_chunks(protocols_.back(), kSimpleChunk, 1.0);
    if (has_ll()) {
      protocols_.push_back({Algorithm::kRing, WireProtocol::kLl, std::max(0.0, base() + kLlBase), ll_inside(),
                            ll_between(), 1.0, ll_limit()});
      set_chunks(protocols_.back(), kLlChunk, kLlData);
    }
    if (link().ll128_latency > 0 && nodes_ == 1) {
      protocols_.push_back({Algorithm::kRing, WireProtocol::kLl128, base() + kLl128Base,
                            faster(inside_, link().latency, link().ll128_latency), between_,
                            copies() * kLl128Inflation});
    }
  }

  void add_trees() {
    const double rate = nodes_ == 2 ? kTreeRateOnTwo : kTreeRate;
    protocols_.push_back(
        {Algorithm::kTree, WireProtocol::kSimple, base(), inside_ + kTreeStep, between_, 1.0 / rate});
    if (!has_ll()) return;
    protocols_.push_back({Algorithm::kTree, WireProtocol::kLl, std::max(0.0, base() + kTreeLlBase),
                          ll_inside(), ll_between() + kTreeLlNodeStep, kTreeLlInflation / rate, ll_limit()});
  }

  /// A reduction in each node's switch, at a share of its rate, alone or followed by a step between nodes.
  void add_nvls(Algorithm algorithm, double share, Seconds node_step) {
    const BytesPerSecond rate = share * link().nvls_bandwidth;
    protocols_.push_back({algorithm, WireProtocol::kSimple, base() + kNvlsBase, 0, node_step, 1.0, rate,
                          kNvlsPipeline * rate});
  }

  void add_nvls_tree() {
    const double share = nodes_ == 2 ? kNvlsOnce : kNvlsInTrees;
    protocols_.push_back({Algorithm::kNvlsTree, WireProtocol::kSimple, base() + kNvlsBase, 0,
                          between_ + kNvlsTreeNodeStep, 1.0, share * link().nvls_bandwidth});
  }

  void add_in_network() {
    if (has_nvls_heads()) return add_nvls(Algorithm::kInNetwork, kNvlsOnce, between_ + kNvlsNetworkStep);
    const bool direct =
        cluster_.intra_node_kind == hardware::IntraNodeKind::kSwitch && local() <= kMostForDirect;
    const auto others = static_cast<double>(local() - 1);
    Seconds inside = 0;
    Seconds network_step = 0;
    if (local() > 1) {
      inside = direct ? inside_ + kDirectStep + others * kDirectMember
                      : others * std::max(0.0, inside_ + kChainStep);
      network_step = direct ? kDirectNetworkStep : kChainNetworkStep;
    }
    protocols_.push_back({Algorithm::kInNetwork, WireProtocol::kSimple,
                          std::max(0.0, base() + kCollNetBase) + 2.0 * inside, 0, between_ + network_step,
                          kCollNetInflation});
  }

  void add_hierarchical() {
    if (local() < 2 || size_ % nodes_ != 0) return;
    protocols_.push_back(
        {Algorithm::kHierarchical, WireProtocol::kSimple, base(), inside_, between_, local_copies()});
  }

  /// Leaves only what uses this protocol, if anything does.
  void keep(WireProtocol wire) {
    const auto uses = [wire](const Protocol& protocol) { return protocol.wire == wire; };
    if (std::none_of(protocols_.begin(), protocols_.end(), uses)) return;
    std::erase_if(protocols_, [&uses](const Protocol& protocol) { return !uses(protocol); });
  }

  /// Leaves all-reduces this algorithm alone, if the group can use it.
  void prefer(Algorithm algorithm) {
    const auto uses = [algorithm](const Protocol& protocol) { return protocol.algorithm == algorithm; };
    if (std::none_of(protocols_.begin(), protocols_.end(), uses)) return;
    for (Protocol& protocol : protocols_) protocol.for_all_reduce = uses(protocol);
  }

  const hardware::ClusterSpec& cluster_;
  std::int64_t size_;
  std::int64_t nodes_;
  Seconds inside_;
  Seconds between_;
  std::vector<Protocol> protocols_;
};

}  // namespace

Protocol message_protocol(const hardware::ClusterSpec& cluster, program::Pattern pattern, std::int64_t nodes,
                          Seconds inside, Seconds between) {
  const bool pairs = pattern == program::Pattern::kPairs;
  const Seconds base = pairs ? cluster.collective_latency : cluster.point_to_point_latency;
  const double inflation = pairs && nodes == 1 ? cluster.intra_node.all_to_all_inflation() : 1.0;
  return {Algorithm::kPairs, WireProtocol::kSimple, base, inside, between, inflation};
}

std::vector<Protocol> protocols_of(const hardware::ClusterSpec& cluster, std::int64_t size,
                                   std::int64_t nodes, Seconds inside, Seconds between) {
  return Choices(cluster, size, nodes, inside, between).all();
}

}  // namespace trainsim::folding
