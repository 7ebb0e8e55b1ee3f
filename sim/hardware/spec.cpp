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
  const bool meshed = intra_node_kind == IntraNodeKind::kMesh && mesh.empty();
  return meshed ? one * static_cast<double>(std::clamp<std::int64_t>(members, 2, gpus_per_node) - 1) : one;
}

}  // namespace trainsim::hardware
