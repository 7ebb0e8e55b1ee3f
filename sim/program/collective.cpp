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

/// Whether members send to each other directly, instead of passing data on.
bool by_messages(CollectiveOp op) {
  return op == CollectiveOp::kAllToAll || op == CollectiveOp::kRingShift;
}

double sum(const std::vector<Phase>& phases, double Phase::*part) {
  double total = 0;
  for (const Phase& phase : phases) total += phase.*part;
  return total;
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

double Phase::bytes_of(const RingFlow& flow) const {
  return (flow.between_nodes ? between : inside) * flow.share;
}

Seconds CollectiveCost::delay() const {
  Seconds total = sum(phases, &Phase::delay);
  for (const Phase& phase : phases) total += phase.ring.added_latency();
  return total;
}

double CollectiveCost::inside() const {
  return sum(phases, &Phase::inside);
}

double CollectiveCost::between() const {
  return sum(phases, &Phase::between);
}

double CollectiveCost::bytes_of(const RingFlow& flow) const {
  return Phase{0, inside(), between()}.bytes_of(flow);
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

Seconds CollectiveCost::tuned_time(const MemberLinks& links) const {
  Seconds time = delay();
  for (const Phase& phase : phases) time += links.time(phase.inside, phase.between);
  return time;
}

CollectiveCost collective_cost(const Group& group, CollectiveOp op, double bytes, const MemberLinks& links) {
  const double plain = bytes_per_member(op, group.size, bytes);
  CollectiveCost best{{{0, plain, plain}}};
  Seconds best_time = std::numeric_limits<double>::infinity();
  for (const Protocol& protocol : group.protocols) {
    const bool usable = op == CollectiveOp::kAllReduce
                            ? protocol.for_all_reduce
                            : protocol.algorithm == (by_messages(op) ? Algorithm::kPairs : Algorithm::kRing);
    if (!usable) continue;
    const CollectiveCost cost = protocol_cost(group, protocol, op, bytes, links);
    const Seconds time = cost.tuned_time(links);
    if (time >= best_time) continue;
    best = cost;
    best_time = time;
  }
  return best;
}

}  // namespace trainsim::program
