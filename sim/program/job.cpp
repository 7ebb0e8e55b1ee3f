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
  const std::int64_t between = ring_steps(op, group.nodes);
  const std::int64_t inside = ring_steps(op, group.size) - between;
  return group.base_latency + static_cast<double>(inside) * group.step_latency +
         static_cast<double>(between) * group.node_step_latency;
}

}  // namespace trainsim::program
