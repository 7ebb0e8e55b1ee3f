// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/background.hpp"

#include <algorithm>
#include <limits>

namespace trainsim::hardware {

BackgroundLoad background_of(const ClusterSpec& cluster, std::int64_t gpus, BytesPerSecond rate) {
  const BytesPerSecond nics =
      static_cast<double>(cluster.nodes_of(gpus) * cluster.nics_per_node) * cluster.nic.effective_bandwidth();
  const double share = nics > 0 ? rate / nics : std::numeric_limits<double>::infinity();
  const FabricSpec& fabric = cluster.fabric;
  // Uplinks that can carry all that is below them can carry this, too.
  const bool binds = !fabric.is_non_blocking();
  return {share, binds ? fabric.background_load + share * std::max(1.0, fabric.oversubscription) : 0.0};
}

ClusterSpec with_background(ClusterSpec cluster, const BackgroundLoad& load) {
  cluster.nic.efficiency *= 1.0 - load.nics;
  cluster.fabric.background_load = load.switches;
  return cluster;
}

}  // namespace trainsim::hardware
