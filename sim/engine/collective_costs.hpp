// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "sim/program/job.hpp"

namespace trainsim::engine {

/// What a collective of a group costs with nothing else on the network.
struct LoneCost {
  program::CollectiveOp op = program::CollectiveOp::kAllReduce;
  double bytes = 0;
  program::CollectiveCost cost;
  /// Latency included (flow_time.hpp): by its links' real bandwidth, and as a private group.
  Seconds alone = 0;
  Seconds as_private = 0;
};

/// The costs of a job's collectives, each worked out once: a step runs few different ones, thousands of
/// times.
class CollectiveCosts {
 public:
  /// The job must outlive this.
  explicit CollectiveCosts(const program::Job& job) : job_(job), known_(job.groups.size()) {}

  /// Cost for a tensor of `bytes` in group number `group`. The reference holds until the next call.
  const LoneCost& of(std::size_t group, program::CollectiveOp op, double bytes);

 private:
  const program::Job& job_;
  /// By group.
  std::vector<std::vector<LoneCost>> known_;
};

}  // namespace trainsim::engine
