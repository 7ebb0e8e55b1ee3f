// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/program/collective.hpp"
#include "sim/program/job.hpp"

namespace trainsim::program {

namespace {

double members_per_node(const Group& group) {
  return static_cast<double>(group.size) / static_cast<double>(group.nodes);
}

double whole_log2(std::int64_t value) {
  return std::floor(std::log2(static_cast<double>(value)));
}

/// Inside nodes a member passes on all but what it sends to another node, so that its flows there carry this
/// share of what it sends.
double share_inside(const Group& group) {
  return group.nodes == 1 ? 1.0 : 1.0 - 1.0 / members_per_node(group);
}

/// What a pair of binary trees over the nodes sends between them, for a tensor that takes `once` one way.
double between_in_trees(const Group& group, double once) {
  return group.nodes == 2 ? once : 2.0 * once;
}

/// Bytes to send inside nodes so that a node's switch gets the tensor of every member, and that member's
/// share of the sum for all (NVLink SHARP), at `limit` at most.
double through_switch(const Group& group, double bytes, BytesPerSecond limit, const MemberLinks& links) {
  const double sent = bytes * (1.0 + 1.0 / members_per_node(group));
  const double inside = sent / share_inside(group);
  const Seconds unlimited = links.time(inside, 0);
  return unlimited > 0 ? inside * std::max(1.0, sent / limit / unlimited) : inside;
}

/// What the switch of a node loses until it is up to speed.
Seconds switch_filling(const Group& group, const Protocol& protocol, double bytes) {
  const double sent = bytes * (1.0 + 1.0 / members_per_node(group));
  return sent * protocol.pipeline_bytes / (bytes + protocol.pipeline_bytes) / protocol.limit;
}

/// Bytes on the wire per byte of data, or as many as make a member as slow as its limit.
double inflation(const Protocol& protocol, const MemberLinks& links) {
  const BytesPerSecond rate = links.rate();
  const bool limited = protocol.limit > 0 && std::isfinite(rate);
  return std::max(protocol.inflation, limited ? rate / protocol.limit : 0.0);
}

/// What a step of a broadcast between nodes takes beyond its latency: the whole of the first chunk.
Seconds chunk_time(const Protocol& protocol, CollectiveOp op, double bytes) {
  if (op != CollectiveOp::kBroadcast || protocol.chunk_bytes <= 0) return 0;
  return protocol.chunk_time * std::min(1.0, bytes / protocol.chunk_bytes);
}

/// Whether parts of a tensor go around a ring, rather than all of it past every member, or members send all
/// at once.
bool goes_round(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kAllGather ||
         op == CollectiveOp::kReduceScatter;
}

Phase ring(const Group& group, const Protocol& protocol, CollectiveOp op, double bytes,
           const MemberLinks& links) {
  const double sent = bytes_per_member(op, group.size, bytes) * inflation(protocol, links);
  const RingSteps steps{ring_steps(op, group.size), group.size, group.nodes, protocol.step_latency,
                        protocol.node_step_latency};
  if (goes_round(op)) return {protocol.base_latency, sent, sent, steps};
  const std::int64_t between = ring_steps(op, group.nodes);
  const std::int64_t inside = steps.count - between;
  return {protocol.base_latency + static_cast<double>(inside) * protocol.step_latency +
              static_cast<double>(between) * (protocol.node_step_latency + chunk_time(protocol, op, bytes)),
          sent, sent};
}

/// Each member passes the tensor up and the sum down.
Phase tree(const Group& group, const Protocol& protocol, double bytes, const MemberLinks& links) {
  const double once = bytes / tree_efficiency(protocol.wire, bytes) * inflation(protocol, links);
  return {protocol.base_latency + 2.0 * (members_per_node(group) - 1.0) * protocol.step_latency +
              2.0 * whole_log2(group.nodes) * protocol.node_step_latency,
          2.0 * once, between_in_trees(group, once)};
}

Phase in_switch(const Group& group, const Protocol& protocol, double bytes, const MemberLinks& links) {
  return {protocol.base_latency + switch_filling(group, protocol, bytes),
          through_switch(group, bytes, protocol.limit, links), 0};
}

Phase nvls_tree(const Group& group, const Protocol& protocol, double bytes, const MemberLinks& links) {
  const double once = bytes / tree_efficiency(protocol.wire, bytes);
  return {protocol.base_latency + 2.0 * whole_log2(group.nodes) * protocol.node_step_latency,
          through_switch(group, once, protocol.limit, links), between_in_trees(group, once)};
}

/// With a limit the node's switch adds up inside nodes; without, members pass the tensor on to those that
/// send it to other nodes, and get the sum from them.
Phase in_network(const Group& group, const Protocol& protocol, double bytes, const MemberLinks& links) {
  const Seconds delay = protocol.base_latency + protocol.node_step_latency;
  if (protocol.limit <= 0) return {delay, 2.0 * bytes * protocol.inflation, bytes};
  return {delay + switch_filling(group, protocol, bytes), through_switch(group, bytes, protocol.limit, links),
          bytes};
}

std::vector<Phase> hierarchical(const Group& group, const Protocol& protocol, double bytes) {
  const double steps = members_per_node(group) - 1.0;
  const Phase inside{protocol.base_latency + steps * protocol.step_latency, bytes * protocol.inflation, 0};
  const auto node_steps = static_cast<double>(ring_steps(CollectiveOp::kAllReduce, group.nodes));
  const Phase between{protocol.base_latency + node_steps * protocol.node_step_latency, 0,
                      bytes_per_member(CollectiveOp::kAllReduce, group.nodes, bytes)};
  return {inside, between, inside};
}

std::vector<Phase> phases(const Group& group, const Protocol& protocol, CollectiveOp op, double bytes,
                          const MemberLinks& links) {
  switch (protocol.algorithm) {
    case Algorithm::kRing:
    case Algorithm::kPairs:
      return {ring(group, protocol, op, bytes, links)};
    case Algorithm::kTree:
      return {tree(group, protocol, bytes, links)};
    case Algorithm::kInSwitch:
      return {in_switch(group, protocol, bytes, links)};
    case Algorithm::kNvlsTree:
      return {nvls_tree(group, protocol, bytes, links)};
    case Algorithm::kInNetwork:
      return {in_network(group, protocol, bytes, links)};
    case Algorithm::kHierarchical:
      return hierarchical(group, protocol, bytes);
  }
  return {};
}

}  // namespace

CollectiveCost protocol_cost(const Group& group, const Protocol& protocol, CollectiveOp op, double bytes,
                             const MemberLinks& links) {
  return {phases(group, protocol, op, bytes, links), protocol.algorithm, protocol.wire};
}

}  // namespace trainsim::program
