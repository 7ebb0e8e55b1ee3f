// SPDX-License-Identifier: Apache-2.0
#include "sim/program/job.hpp"

namespace trainsim::program {

double ring_bytes(CollectiveOp op, std::int64_t size, double bytes) {
  const double p = static_cast<double>(size);
  const double once = (p - 1.0) / p * bytes;
  return op == CollectiveOp::kAllReduce ? 2.0 * once : once;
}

std::int64_t ring_steps(CollectiveOp op, std::int64_t size) {
  return op == CollectiveOp::kAllReduce ? 2 * (size - 1) : size - 1;
}

Seconds collective_latency(const Group& group, CollectiveOp op) {
  return group.base_latency + static_cast<double>(ring_steps(op, group.size)) * group.step_latency;
}

}  // namespace trainsim::program
