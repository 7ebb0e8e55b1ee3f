// SPDX-License-Identifier: Apache-2.0
#include "sim/program/job.hpp"

#include <limits>

namespace trainsim::program {

double ring_bytes(CollectiveOp op, std::int64_t size, double bytes) {
  const double p = static_cast<double>(size);
  const double once = (p - 1.0) / p * bytes;
  return op == CollectiveOp::kAllReduce ? 2.0 * once : once;
}

std::int64_t ring_steps(CollectiveOp op, std::int64_t size) {
  return op == CollectiveOp::kAllReduce ? 2 * (size - 1) : size - 1;
}

CollectiveCost protocol_cost(const Group& group, const Protocol& protocol, CollectiveOp op, double bytes,
                             BytesPerSecond rate) {
  const std::int64_t between = ring_steps(op, group.nodes);
  const std::int64_t inside = ring_steps(op, group.size) - between;
  CollectiveCost cost{protocol.base_latency, ring_bytes(op, group.size, bytes)};
  if (protocol.in_switch) {
    // Every member sends its tensor to the switch, and its share of the sum to all (NVLink SHARP).
    cost.sent = bytes * (1.0 + 1.0 / static_cast<double>(group.size));
    const double filling = protocol.pipeline_bytes / (bytes + protocol.pipeline_bytes);
    cost.delay += cost.sent * filling / protocol.limit;
  } else {
    cost.delay += static_cast<double>(inside) * protocol.step_latency +
                  static_cast<double>(between) * protocol.node_step_latency;
  }
  cost.sent *= protocol.inflation;
  if (protocol.limit > 0 && rate > protocol.limit) cost.sent *= rate / protocol.limit;
  return cost;
}

CollectiveCost collective_cost(const Group& group, CollectiveOp op, double bytes, BytesPerSecond rate) {
  CollectiveCost best{0, ring_bytes(op, group.size, bytes)};
  Seconds best_time = std::numeric_limits<double>::infinity();
  for (const Protocol& protocol : group.protocols) {
    if (protocol.in_switch && op != CollectiveOp::kAllReduce) continue;
    const CollectiveCost cost = protocol_cost(group, protocol, op, bytes, rate);
    const Seconds time = cost.delay + cost.sent / rate;
    if (time >= best_time) continue;
    best = cost;
    best_time = time;
  }
  return best;
}

}  // namespace trainsim::program
