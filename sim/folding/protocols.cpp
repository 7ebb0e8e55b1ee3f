// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/protocols.hpp"

#include <algorithm>

namespace trainsim::folding {

namespace {

using program::Protocol;

/// NCCL's table of base latencies (src/graph/tuning.cc): LL 6.6 us in a ring and 6.8 in a tree, LL128 14,
/// Simple 8.4, NVLS 25. A cluster's collective_latency holds that of Simple.
constexpr Seconds kLlBase = -1.8e-6;
constexpr Seconds kTreeLlBase = -1.6e-6;
constexpr Seconds kLl128Base = 5.6e-6;
constexpr Seconds kNvlsBase = 16.6e-6;

/// How much longer a step of a tree takes than one of a ring, from the same file: Simple inside a node (4.0
/// us for 3.4), LL between nodes (5.0 for 2.7).
constexpr Seconds kTreeStep = 0.6e-6;
constexpr Seconds kTreeLlNodeStep = 2.3e-6;

/// Share of its links' rate that a tree reaches. On two nodes, whose network carries half of what a ring's
/// does: 57 GB/s of bus bandwidth measured on two A100 nodes with 45 GB/s of network each (nccl issue 837).
/// On more: what NCCL's table lets a channel carry (17.8 GB/s on Ampere, 36 on Hopper) of what an HDR or NDR
/// port does (22.5, 46); measured on 5 H100 nodes, 150 of 190 GB/s (nccl issue 1368). And by how much LL
/// lowers that.
constexpr double kTreeRateOnTwo = 0.68;
constexpr double kTreeRate = 0.78;
constexpr double kTreeLlInflation = 3.8;

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
    if (nodes_ > 1) add_trees();
    if (link().nvls_bandwidth > 0 && nodes_ == 1 && size_ >= kFewestForNvls) {
      protocols_.push_back({Algorithm::kInSwitch, WireProtocol::kSimple, base() + kNvlsBase, 0, 0, 1.0,
                            link().nvls_bandwidth, kNvlsPipeline * link().nvls_bandwidth});
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
  /// The copies at the end of a ring's phase, as bytes on the wire.
  double copies() const {
    return nodes_ == 1 && size_ > 1 ? 1.0 + link().phase_copy / static_cast<double>(size_ - 1) : 1.0;
  }

  void add_rings() {
    protocols_.push_back({Algorithm::kRing, WireProtocol::kSimple, base(), inside_, between_, copies()});
    if (has_ll()) {
      protocols_.push_back({Algorithm::kRing, WireProtocol::kLl, std::max(0.0, base() + kLlBase), ll_inside(),
                            ll_between(), 1.0, ll_limit()});
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

Protocol message_protocol(const hardware::ClusterSpec& cluster, program::Pattern pattern, Seconds inside,
                          Seconds between) {
  const bool pairs = pattern == program::Pattern::kPairs;
  const Seconds base = pairs ? cluster.collective_latency : cluster.point_to_point_latency;
  return {Algorithm::kPairs, WireProtocol::kSimple, base, inside, between, 1.0};
}

std::vector<Protocol> protocols_of(const hardware::ClusterSpec& cluster, std::int64_t size,
                                   std::int64_t nodes, Seconds inside, Seconds between) {
  return Choices(cluster, size, nodes, inside, between).all();
}

}  // namespace trainsim::folding
