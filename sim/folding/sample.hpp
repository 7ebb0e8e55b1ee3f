// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/hardware/spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::folding {

/// A smaller cluster and plan whose folded job is that of the whole, but for the number of replicas.
struct Sample {
  hardware::ClusterSpec cluster;
  plan::ParallelPlan plan;
  /// Nodes' worth of replicas in the whole and in the sample; equal when the sample is the whole.
  std::int64_t blocks = 1;
  std::int64_t kept_blocks = 1;
};

/// Where the fabric can't limit a flow and all GPUs are alike, every node's worth of data-parallel replicas
/// looks like every other: its rings leave each node over the same NICs, for any number of nodes from two up.
/// Two nodes' worth of replicas then show all there is, and a run costs the same for any data_parallel. The
/// whole itself is returned where this does not hold.
Sample sample_replicas(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan);

}  // namespace trainsim::folding
