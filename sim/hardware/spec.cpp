// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/spec.hpp"

#include <algorithm>
#include <cmath>

namespace trainsim::hardware {

double GpuSpec::clock_share() const {
  if (power_limit >= rated_power) return 1.0;
  return std::cbrt((power_limit - static_power) / (rated_power - static_power));
}

bool FabricSpec::is_tree() const {
  return kind == FabricKind::kFatTree || kind == FabricKind::kRailOptimized || kind == FabricKind::kRailOnly;
}

bool FabricSpec::is_non_blocking() const {
  return is_tree() && oversubscription <= 1.0 && pod_oversubscription <= 1.0 && background_load <= 0 &&
         spreading == Spreading::kIdeal;
}

BytesPerSecond ClusterSpec::bandwidth_within(std::int64_t members) const {
  const BytesPerSecond one = intra_node.effective_bandwidth();
  BytesPerSecond all = 0;
  if (intra_node_kind == IntraNodeKind::kMesh && mesh.empty())
    all = one * static_cast<double>(gpus_per_node - 1);
  for (const MeshLink& link : mesh) {
    if (link.first == 0 || link.second == 0) all += one * static_cast<double>(link.cables);
  }
  for (const NodeLink& link : node_links) {
    const Vertex first{VertexKind::kGpu, 0};
    const bool cabled = link.first.kind == VertexKind::kGpu && link.second.kind == VertexKind::kGpu;
    if (cabled && (link.first == first || link.second == first)) all += link.bandwidth;
  }
  if (all <= 0 || gpus_per_node < 2) return one;
  const auto others = static_cast<double>(std::clamp<std::int64_t>(members, 2, gpus_per_node) - 1);
  return all * others / static_cast<double>(gpus_per_node - 1);
}

BytesPerSecond HostSpec::copy_rate(std::int64_t gpus) const {
  return pcie_efficiency * std::min(pcie_bandwidth, uplink_bandwidth / static_cast<double>(gpus));
}

}  // namespace trainsim::hardware
