// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/program/job.hpp"

namespace trainsim::cli {

/// Why a collective over `gpus` GPUs of a cluster can't be simulated; empty when it can.
std::string collective_fault(const hardware::ClusterSpec& cluster, std::int64_t gpus,
                             program::Pattern pattern = program::Pattern::kRings);

/// Who sends to whom in a collective operation.
inline program::Pattern pattern_of(program::CollectiveOp op) {
  return op == program::CollectiveOp::kAllToAll ? program::Pattern::kPairs : program::Pattern::kRings;
}

/// Collectives over the first GPUs of a cluster with nothing else on the network.
class CollectiveBench {
 public:
  /// REQUIRES: collective_fault() finds nothing.
  CollectiveBench(const hardware::ClusterSpec& cluster, std::int64_t gpus,
                  program::Pattern pattern = program::Pattern::kRings);
  /// Time for a tensor of `bytes`. REQUIRES: an operation of the pattern.
  Seconds time(program::CollectiveOp op, double bytes) const;
  /// What it is made of, and how the data are moved.
  program::CollectiveCost cost(program::CollectiveOp op, double bytes) const;
  /// Nodes that the GPUs lie on.
  std::int64_t nodes() const { return group().nodes; }

 private:
  const program::Group& group() const;

  program::Job job_;
};

}  // namespace trainsim::cli
