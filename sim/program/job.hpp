// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/collective.hpp"
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
  /// Share of what a member sends that crosses the link in all flows of its communicator together: in flows
  /// inside a node, and in flows between nodes.
  double inside_load = 1.0;
  double between_load = 0;
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
  bool between_nodes = false;
};

/// Who sends to whom in a communicator.
enum class Pattern : std::uint8_t {
  /// Each member to the next of a ring, or of several.
  kRings,
  /// Each member to each other, for all-to-all.
  kPairs,
  /// Each member to the next one by rank, for shifts around a single ring.
  kNeighbours,
};

/// A communicator instance.
struct Group {
  GroupKind kind = GroupKind::kTensor;
  Pattern pattern = Pattern::kRings;
  /// Members that exist as ranks of the job, as indices into Job::ranks.
  std::vector<std::uint32_t> members;
  /// True number of members, P.
  std::int64_t size = 1;
  /// Flows of its pattern; empty when P = 1 or communication is free.
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
  bool between_nodes = false;
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
  std::int64_t context_rank = 0;
  /// Index into Job::programs.
  std::uint32_t program = 0;
  /// Factor on all compute times (1 = nominal, 1.3 = 30 % slower).
  double slowdown = 1.0;
  /// Index into Job::groups by GroupKind; -1 when the rank is in no such group.
  std::array<std::int32_t, kGroupKinds> groups = {-1, -1, -1, -1, -1, -1, -1, -1};
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

}  // namespace trainsim::program
