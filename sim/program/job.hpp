// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/program.hpp"

namespace trainsim::program {

/// A resource that flows share: one direction of a cable, a switch port, or a bundle of equal uplinks.
struct Link {
  std::string name;
  /// Of the real link.
  BytesPerSecond bandwidth = 0;
  /// Common divisor that was taken out of the weights of its hops; the shared capacity is bandwidth /
  /// divisor.
  std::uint32_t divisor = 1;
  BytesPerSecond capacity() const { return bandwidth / static_cast<double>(divisor); }
};

/// A link on a route.
struct Hop {
  std::uint32_t link = 0;
  /// How many of the flows that this flow stands for cross that one link, over its divisor; 1 unless ranks
  /// were folded.
  std::uint32_t weight = 1;
  /// Share of what a ring member sends that crosses the link in all rings of its communicator together.
  double load = 1.0;
};

/// A path that data takes from one rank to another.
struct Flow {
  std::vector<Hop> route;
  /// Time for the first byte to arrive.
  Seconds latency = 0;
};

/// A flow that belongs to a collective and carries `share` of the bytes that one ring member sends.
struct RingFlow {
  Flow flow;
  double share = 1.0;
};

/// How a group puts a collective's bytes on the wire; NCCL has several ways and takes the fastest for the
/// size.
struct Protocol {
  /// Fixed time of a collective.
  Seconds base_latency = 0;
  /// What each ring step adds inside a node and between nodes.
  Seconds step_latency = 0;
  Seconds node_step_latency = 0;
  /// Bytes on the wire per byte of data.
  double inflation = 1.0;
  /// Rate that a member can't exceed; 0 = that of its links.
  BytesPerSecond limit = 0;
  /// Whether the switch adds up what the members send it (NVLink SHARP), instead of a ring; all-reduces only.
  bool in_switch = false;
  /// Bytes that must be on the way before data moves at full rate.
  double pipeline_bytes = 0;
};

/// A communicator instance.
struct Group {
  GroupKind kind = GroupKind::kTensor;
  /// Members that exist as ranks of the job, as indices into Job::ranks.
  std::vector<std::uint32_t> members;
  /// True number of members, P.
  std::int64_t size = 1;
  /// Flows of its ring (or rings); empty when P = 1 or communication is free.
  std::vector<RingFlow> flows;
  /// Nodes that the members lie on.
  std::int64_t nodes = 1;
  /// Protocols to choose from; without any, a collective has no latency.
  std::vector<Protocol> protocols;
};

/// A message channel from a rank to one of its peers.
struct Peer {
  /// Index into Job::ranks; -1 when the rank has no such peer.
  std::int32_t rank = -1;
  Flow flow;
  /// Fixed time of a message, route latency included.
  Seconds latency = 0;
};

/// A simulated rank.
struct Rank {
  /// Global rank of the member that is simulated.
  std::int64_t id = 0;
  /// How many real ranks it stands for, itself included.
  std::int64_t represents = 1;
  std::int64_t stage = 0;
  std::int64_t tensor_rank = 0;
  std::int64_t data_rank = 0;
  /// Index into Job::programs.
  std::uint32_t program = 0;
  /// Factor on all compute times (1 = nominal, 1.3 = 30 % slower).
  double slowdown = 1.0;
  /// Index into Job::groups by GroupKind; -1 when the rank is in no such group.
  std::array<std::int32_t, kGroupKinds> groups = {-1, -1, -1};
  std::array<Peer, kPeerKinds> peers;
};

/// Input of an executor: ranks with their programs, and the network between them. Knows nothing of
/// transformers.
struct Job {
  std::vector<Program> programs;
  std::vector<Rank> ranks;
  std::vector<Group> groups;
  std::vector<Link> links;
  /// Ranks before folding.
  std::int64_t world_size = 1;
  bool folded = false;
};

/// Bytes that one member of a ring of `size` sends for a collective over a tensor of `bytes`:
/// 2(P-1)/P N for all-reduce, (P-1)/P N for all-gather and reduce-scatter (Thakur et al. 2005).
double ring_bytes(CollectiveOp op, std::int64_t size, double bytes);
/// Steps of the ring: 2(P-1) for all-reduce, P-1 otherwise.
std::int64_t ring_steps(CollectiveOp op, std::int64_t size);
/// What a collective of a tensor of `bytes` costs with one protocol: time before its first byte moves at full
/// rate, and bytes that each member then sends.
struct CollectiveCost {
  Seconds delay = 0;
  double sent = 0;
};
/// `rate` is what a member sends per second when nothing else moves. Of the ring steps as many as a ring over
/// the nodes alone would have cross between nodes, the rest stay inside (NCCL's tuning model,
/// src/graph/tuning.cc).
CollectiveCost protocol_cost(const Group& group, const Protocol& protocol, CollectiveOp op, double bytes,
                             BytesPerSecond rate);
/// The protocol that would be fastest with nothing else on the network, as NCCL chooses. `rate` may be
/// infinite.
CollectiveCost collective_cost(const Group& group, CollectiveOp op, double bytes, BytesPerSecond rate);

}  // namespace trainsim::program
