// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/flow_time.hpp"

#include <algorithm>
#include <cmath>

namespace trainsim::engine {

double whole_bytes(double bytes) {
  return bytes <= 0 ? 0.0 : std::max(1.0, std::round(bytes));
}

Seconds lone_flow_time(const program::Job& job, const program::Flow& flow, double bytes) {
  Seconds longest = 0;
  for (const program::Hop& hop : flow.route) {
    longest = std::max(longest, whole_bytes(bytes) / job.links[hop.link].bandwidth);
  }
  return longest;
}

Seconds lone_collective_time(const program::Job& job, const program::Group& group, program::CollectiveOp op,
                             double bytes) {
  const double sent = program::ring_bytes(op, group.size, bytes);
  Seconds longest = 0;
  for (const program::RingFlow& ring : group.flows) {
    for (const program::Hop& hop : ring.flow.route) {
      longest = std::max(longest, whole_bytes(sent * hop.load) / job.links[hop.link].bandwidth);
    }
  }
  return program::collective_latency(group, op) + longest;
}

Seconds private_collective_time(const program::Job& job, const program::Group& group,
                                program::CollectiveOp op, double bytes) {
  const double sent = program::ring_bytes(op, group.size, bytes);
  Seconds longest = 0;
  for (const program::RingFlow& ring : group.flows) {
    for (const program::Hop& hop : ring.flow.route) {
      const BytesPerSecond rate = job.links[hop.link].capacity() / static_cast<double>(hop.weight);
      longest = std::max(longest, whole_bytes(sent * ring.share) / rate);
    }
  }
  return program::collective_latency(group, op) + longest;
}

std::vector<bool> private_groups(const program::Job& job) {
  std::vector<int> crossings(job.links.size(), 0);
  const auto count = [&](const program::Flow& flow) {
    for (const program::Hop& hop : flow.route) ++crossings[hop.link];
  };
  for (const program::Group& group : job.groups) {
    for (const program::RingFlow& ring : group.flows) count(ring.flow);
  }
  for (const program::Rank& rank : job.ranks) {
    for (const program::Peer& peer : rank.peers) count(peer.flow);
  }
  std::vector<bool> alone;
  for (const program::Group& group : job.groups) {
    bool all = true;
    for (const program::RingFlow& ring : group.flows) {
      for (const program::Hop& hop : ring.flow.route) all = all && crossings[hop.link] == 1;
    }
    alone.push_back(all);
  }
  return alone;
}

std::size_t count_instructions(const program::Job& job) {
  std::size_t count = 0;
  for (const program::Rank& rank : job.ranks) {
    for (const auto& stream : job.programs[rank.program].streams) count += stream.size();
  }
  return count;
}

std::string describe_wait(const program::Job& job, std::size_t rank, program::Stream stream,
                          const program::Instruction& instruction) {
  const program::Rank& who = job.ranks[rank];
  std::string text = "rank " + std::to_string(who.id) + " (stage " + std::to_string(who.stage) + "), " +
                     to_string(stream) + " stream: waits for ";
  switch (instruction.op) {
    case program::Opcode::kReceive:
      return text + "message " + std::to_string(instruction.id);
    case program::Opcode::kWait:
      return text + "event " + std::to_string(instruction.id);
    case program::Opcode::kCollective:
      return text + "the other members of its " + to_string(instruction.group) + " group";
    default:
      return text + "a transfer to end";
  }
}

}  // namespace trainsim::engine
