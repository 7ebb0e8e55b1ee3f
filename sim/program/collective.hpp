// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/collective.hpp"
#include "sim/base/units.hpp"
#include "sim/program/program.hpp"
#include "sim/program/ring_steps.hpp"

namespace trainsim::program {

struct Group;
struct RingFlow;

/// One way in which a group can move a collective's bytes; NCCL has several and takes the fastest for the
/// size.
struct Protocol {
  Algorithm algorithm = Algorithm::kRing;
  WireProtocol wire = WireProtocol::kSimple;
  /// Fixed time of a collective.
  Seconds base_latency = 0;
  /// What each step adds inside a node and between nodes.
  Seconds step_latency = 0;
  Seconds node_step_latency = 0;
  /// Bytes on the wire per byte of data; of a reduction in the network and of hierarchical all-reduces inside
  /// nodes only.
  double inflation = 1.0;
  /// Rate that a member can't exceed; 0 = that of its links. Of reductions in a node's switch inside nodes
  /// only.
  BytesPerSecond limit = 0;
  /// Bytes that must be on the way before data moves at full rate.
  double pipeline_bytes = 0;
  /// Whether all-reduces may use it; rings alone serve other operations.
  bool for_all_reduce = true;
  /// Data in the chunks of all channels together, in bytes, and time that a node of a broadcast needs to send
  /// them: it has to have them before it passes them on.
  double chunk_bytes = 0;
  Seconds chunk_time = 0;
};

/// Bytes that one of `size` members sends for a collective over a tensor of `bytes`: in a ring 2(P-1)/P N for
/// all-reduce, (P-1)/P N for all-gather and reduce-scatter (Thakur et al. 2005), N for broadcast; (P-1)/P N
/// for all-to-all, where N is what each member has for all; N for a shift around a ring.
double bytes_per_member(CollectiveOp op, std::int64_t size, double bytes);
/// Steps of the ring: 2(P-1) for all-reduce, P-1 otherwise; of an all-to-all or a shift, in which all send
/// at once, 1.
std::int64_t ring_steps(CollectiveOp op, std::int64_t size);
/// Rate of a tree for an all-reduce of `bytes` as a share of its rate for large ones, in (0, 1]: filling and
/// draining it takes time. From NCCL's table (src/graph/tuning.cc), between whose powers of two it is
/// interpolated.
double tree_efficiency(WireProtocol wire, double bytes);

/// Links that limit what a member sends, each as the time that it takes per byte that the member sends in its
/// flows inside nodes, and in those between nodes. Without any, sending takes no time.
struct MemberLinks {
  std::vector<std::pair<double, double>> times;

  /// Rate of a member all of whose flows send as much; infinite without links.
  BytesPerSecond rate() const;
  /// Time in which a member sends so much inside nodes and between nodes.
  Seconds time(double inside, double between) const;
};

/// A part of a collective in which all members send at once: time before its first byte moves at full rate,
/// and bytes that each member then sends inside nodes and between nodes, as if it had one flow of each kind.
/// Where these go around a ring in steps, the latencies of the steps come on top.
struct Phase {
  Seconds delay = 0;
  double inside = 0;
  double between = 0;
  RingSteps ring = {};

  /// Bytes that a flow of the group carries.
  double bytes_of(const RingFlow& flow) const;
};

/// What a collective costs with one protocol.
struct CollectiveCost {
  /// One after the other: hierarchical all-reduces have three, all else has one.
  std::vector<Phase> phases;
  Algorithm algorithm = Algorithm::kRing;
  WireProtocol wire = WireProtocol::kSimple;

  /// Of all phases together: what NCCL counts as latency, that of all steps included.
  Seconds delay() const;
  double inside() const;
  double between() const;
  /// Bytes that a flow of the group carries.
  double bytes_of(const RingFlow& flow) const;
  /// Time with nothing else on the network in NCCL's tuning model (src/graph/tuning.cc), by which it chooses:
  /// the delay and the time of the bytes. Rings are as fast or faster, as latencies hide behind bytes.
  Seconds tuned_time(const MemberLinks& links) const;
};
/// In NCCL's model, of a ring's steps as many as a ring over the nodes alone would have cross between nodes,
/// the rest stay inside. A tree goes up and down the chain of each node and log2 of the nodes. Each node is
/// an inner node of one of its two trees and a leaf of the other, and so sends as much as in a ring; of two
/// nodes each only sends half of the tensor up and half of the sum down (NCCL's tuning model,
/// src/graph/tuning.cc). Where a switch adds up, a member sends it the tensor, and its share of the sum to
/// all. Switches between nodes get the sum of a node from it, and send it the sum of all.
CollectiveCost protocol_cost(const Group& group, const Protocol& protocol, CollectiveOp op, double bytes,
                             const MemberLinks& links);
/// The protocol whose tuned time is the shortest, as NCCL chooses.
CollectiveCost collective_cost(const Group& group, CollectiveOp op, double bytes, const MemberLinks& links);

}  // namespace trainsim::program
