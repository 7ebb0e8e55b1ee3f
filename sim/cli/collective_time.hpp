// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/program/job.hpp"

namespace trainsim::cli {

/// Collectives over the first GPUs of a cluster with nothing else on the network.
class CollectiveBench {
 public:
  /// REQUIRES: gpus >= 2, and whole nodes when they are more than one.
  CollectiveBench(const hardware::ClusterSpec& cluster, std::int64_t gpus);
  /// Time for a tensor of `bytes`.
  Seconds time(program::CollectiveOp op, double bytes) const;

 private:
  program::Job job_;
};

}  // namespace trainsim::cli
