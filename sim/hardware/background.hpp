// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"

namespace trainsim::hardware {

/// What else the network carries while a job runs.
struct BackgroundLoad {
  /// Share of what a NIC can send, and of what the links between switches can carry, other jobs' part
  /// included.
  double nics = 0;
  double switches = 0;
};

/// The load of a job on `gpus` GPUs whose nodes send `rate` bytes per second in all, each NIC as much, to
/// something above the leaves. An oversubscribed leaf passes on what enters it over less bandwidth, by its
/// ratio. Shares of 1 and more are more than there is; infinite without NICs.
BackgroundLoad background_of(const ClusterSpec& cluster, std::int64_t gpus, BytesPerSecond rate);

/// The cluster as the job finds it beside such a load. REQUIRES: both shares are below 1.
ClusterSpec with_background(ClusterSpec cluster, const BackgroundLoad& load);

}  // namespace trainsim::hardware
