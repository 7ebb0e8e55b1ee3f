// SPDX-License-Identifier: Apache-2.0
#include "sim/program/collective.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/program/job.hpp"

namespace trainsim::program {

namespace {

/// NCCL's treeCorrectionFactor for 64 B, 128 B, ... 512 MiB, by protocol; above there is no loss.
using SizeFactors = std::array<double, 24>;
constexpr std::array<SizeFactors, 3> kTreeFactors = {
    {/* Simple */ {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                   .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
     /* LL */ {1., 1., 1., 1., .9, .8, .7, .7, .7, .7, .6, .5,
               .4, .4, .5, .6, .7, .8, .9, 1., 1., 1., 1., 1.},
     /* LL128 */ {1., 1., 1., 1., 1., .9, .8, .8, .8, .7, .6, .6,
                  .6, .6, .6, .6, .8, .9, .9, .9, .9, 1., 1., 1.}}};
constexpr double kSmallestSize = 64;

double whole_log2(std::int64_t value) {
  return std::floor(std::log2(static_cast<double>(value)));
}

Seconds ring_latency(const Group& group, const Protocol& protocol, CollectiveOp op) {
  const std::int64_t between = ring_steps(op, group.nodes);
  const std::int64_t inside = ring_steps(op, group.size) - between;
  return static_cast<double>(inside) * protocol.step_latency +
         static_cast<double>(between) * protocol.node_step_latency;
}

Seconds tree_latency(const Group& group, const Protocol& protocol) {
  const double chain = static_cast<double>(group.size) / static_cast<double>(group.nodes) - 1.0;
  return 2.0 * (chain * protocol.step_latency + whole_log2(group.nodes) * protocol.node_step_latency);
}

/// Whether members send to each other directly, instead of passing data on.
bool by_messages(CollectiveOp op) {
  return op == CollectiveOp::kAllToAll || op == CollectiveOp::kRingShift;
}

/// Bytes on the wire per byte of data, or as many as make a member as slow as its limit.
double inflation(const Protocol& protocol, BytesPerSecond rate) {
  const bool limited = protocol.limit > 0 && std::isfinite(rate);
  return std::max(protocol.inflation, limited ? rate / protocol.limit : 0.0);
}

}  // namespace

double bytes_per_member(CollectiveOp op, std::int64_t size, double bytes) {
  const double p = static_cast<double>(size);
  const double once = (p - 1.0) / p * bytes;
  if (op == CollectiveOp::kBroadcast || op == CollectiveOp::kRingShift) return bytes;
  return op == CollectiveOp::kAllReduce ? 2.0 * once : once;
}

std::int64_t ring_steps(CollectiveOp op, std::int64_t size) {
  if (op == CollectiveOp::kAllToAll || op == CollectiveOp::kRingShift) return size > 1 ? 1 : 0;
  return op == CollectiveOp::kAllReduce ? 2 * (size - 1) : size - 1;
}

double tree_efficiency(WireProtocol wire, double bytes) {
  const SizeFactors& factors = kTreeFactors[static_cast<std::size_t>(wire)];
  const double place = std::log2(std::max(bytes, kSmallestSize) / kSmallestSize);
  const auto below = static_cast<std::size_t>(place);
  if (below >= factors.size()) return 1.0;
  const double next = below + 1 < factors.size() ? factors[below + 1] : 1.0;
  return factors[below] + (next - factors[below]) * (place - std::floor(place));
}

double CollectiveCost::bytes_of(const RingFlow& flow) const {
  return (flow.between_nodes ? between : inside) * flow.share;
}

BytesPerSecond MemberLinks::rate() const {
  return 1.0 / time(1.0, 1.0);
}

Seconds MemberLinks::time(double inside, double between) const {
  Seconds longest = 0;
  for (const auto& [per_inside, per_between] : times)
    longest = std::max(longest, inside * per_inside + between * per_between);
  return longest;
}

Seconds CollectiveCost::lone_time(const MemberLinks& links) const {
  return delay + links.time(inside, between);
}

CollectiveCost protocol_cost(const Group& group, const Protocol& protocol, CollectiveOp op, double bytes,
                             const MemberLinks& links) {
  CollectiveCost cost{protocol.base_latency,
                      0,
                      0,
                      protocol.algorithm,
                      protocol.wire,
                      protocol.base_latency,
                      protocol.step_latency,
                      protocol.node_step_latency};
  switch (protocol.algorithm) {
    case Algorithm::kRing:
    case Algorithm::kPairs:
      cost.inside = cost.between = bytes_per_member(op, group.size, bytes);
      cost.delay += ring_latency(group, protocol, op);
      break;
    case Algorithm::kTree:
      // Each member passes the tensor up and the sum down.
      cost.inside = 2.0 * bytes / tree_efficiency(protocol.wire, bytes);
      cost.between = group.nodes == 2 ? cost.inside / 2.0 : cost.inside;
      cost.delay += tree_latency(group, protocol);
      break;
    case Algorithm::kInSwitch:
      // Every member sends its tensor to the switch, and its share of the sum to all (NVLink SHARP).
      cost.inside = cost.between = bytes * (1.0 + 1.0 / static_cast<double>(group.size));
      cost.delay +=
          cost.inside * protocol.pipeline_bytes / (bytes + protocol.pipeline_bytes) / protocol.limit;
      break;
  }
  const double factor = inflation(protocol, links.rate());
  cost.inside *= factor;
  cost.between *= factor;
  return cost;
}

CollectiveCost collective_cost(const Group& group, CollectiveOp op, double bytes, const MemberLinks& links) {
  const double plain = bytes_per_member(op, group.size, bytes);
  CollectiveCost best{0, plain, plain};
  Seconds best_time = std::numeric_limits<double>::infinity();
  for (const Protocol& protocol : group.protocols) {
    const bool usable = op == CollectiveOp::kAllReduce
                            ? protocol.for_all_reduce
                            : protocol.algorithm == (by_messages(op) ? Algorithm::kPairs : Algorithm::kRing);
    if (!usable) continue;
    const CollectiveCost cost = protocol_cost(group, protocol, op, bytes, links);
    const Seconds time = cost.lone_time(links);
    if (time >= best_time) continue;
    best = cost;
    best_time = time;
  }
  return best;
}

}  // namespace trainsim::program
