// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/protocols.hpp"

#include <algorithm>

namespace trainsim::folding {

namespace {

/// NCCL's table of base latencies (src/graph/tuning.cc): ring with LL 6.6 us, LL128 14, Simple 8.4, NVLS 25.
/// A cluster's collective_latency holds that of Simple.
constexpr Seconds kLlBase = -1.8e-6;
constexpr Seconds kLl128Base = 5.6e-6;
constexpr Seconds kNvlsBase = 16.6e-6;

/// Of every 128 bytes of LL128 8 are flags.
constexpr double kLl128Inflation = 128.0 / 120.0;

/// Bytes after which reduction in switches runs at half of its rate. Fitted on all-reduces of 8 H200.
constexpr double kNvlsPipeline = 12 * kMebi;

/// Members from which NCCL reduces in switches, as measured on 4 to 8 H200 (ml-engineering, network).
constexpr std::int64_t kFewestForNvls = 5;

/// The copies at the end of a phase, as bytes on the wire.
double with_copies(const hardware::LinkSpec& link, std::int64_t size, std::int64_t nodes) {
  return nodes == 1 && size > 1 ? 1.0 + link.phase_copy / static_cast<double>(size - 1) : 1.0;
}

}  // namespace

std::vector<program::Protocol> protocols_of(const hardware::ClusterSpec& cluster, std::int64_t size,
                                            std::int64_t nodes, Seconds inside, Seconds between) {
  const hardware::LinkSpec& link = cluster.intra_node;
  const Seconds base = cluster.collective_latency;
  const double copies = with_copies(link, size, nodes);
  std::vector<program::Protocol> protocols = {{base, inside, between, copies}};
  const auto faster = [](Seconds latency, Seconds simple, Seconds other) {
    return std::max(0.0, latency - (simple - other));
  };
  const bool net = nodes == 1 || cluster.nic.ll_bandwidth > 0;
  if (link.ll_bandwidth > 0 && net) {
    const BytesPerSecond limit =
        nodes == 1 ? link.ll_bandwidth : std::min(link.ll_bandwidth, cluster.nic.ll_bandwidth);
    protocols.push_back({std::max(0.0, base + kLlBase), faster(inside, link.latency, link.ll_latency),
                         faster(between, cluster.nic.latency, cluster.nic.ll_latency), 1.0, limit});
  }
  if (link.ll128_latency > 0 && nodes == 1) {
    protocols.push_back({base + kLl128Base, faster(inside, link.latency, link.ll128_latency), between,
                         copies * kLl128Inflation});
  }
  if (link.nvls_bandwidth > 0 && nodes == 1 && size >= kFewestForNvls) {
    protocols.push_back({base + kNvlsBase, 0, 0, 1.0, link.nvls_bandwidth, true, kNvlsPipeline});
  }
  return protocols;
}

}  // namespace trainsim::folding
