// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/flow_time.hpp"

#include <algorithm>
#include <cmath>

namespace trainsim::engine {

namespace {

/// Time of all phases. `sending` says of a phase how long its bytes take, inside nodes and between nodes.
template <class Sending>
Seconds total(const program::CollectiveCost& cost, Sending sending) {
  Seconds time = 0;
  for (const program::Phase& phase : cost.phases) time += phase.delay + sending(phase);
  return time;
}

/// Times of flows inside nodes and between nodes.
struct SendingTimes {
  Seconds inside = 0;
  Seconds between = 0;

  /// A flow of the group takes at least so long.
  void see(const program::RingFlow& flow, Seconds time) {
    Seconds& longest = flow.between_nodes ? between : inside;
    longest = std::max(longest, time);
  }
};

}  // namespace

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

program::MemberLinks member_links(const program::Job& job, const program::Group& group) {
  program::MemberLinks links;
  for (const program::RingFlow& ring : group.flows) {
    for (const program::Hop& hop : ring.flow.route) {
      const BytesPerSecond bandwidth = job.links[hop.link].bandwidth;
      links.times.emplace_back(hop.inside_load / bandwidth, hop.between_load / bandwidth);
    }
  }
  return links;
}

Seconds lone_collective_time(const program::Job& job, const program::Group& group,
                             const program::CollectiveCost& cost) {
  return total(cost, [&](const program::Phase& phase) {
    SendingTimes own;
    Seconds longest = 0;
    for (const program::RingFlow& ring : group.flows) {
      for (const program::Hop& hop : ring.flow.route) {
        const double inside = phase.inside * hop.inside_load;
        const double between = phase.between * hop.between_load;
        const BytesPerSecond bandwidth = job.links[hop.link].bandwidth;
        own.see(ring, whole_bytes(ring.between_nodes ? between : inside) / bandwidth);
        longest = std::max(longest, whole_bytes(inside + between) / bandwidth);
      }
    }
    // Where both kinds share the slowest link, either may be through before the other.
    return std::min(phase.ring.time(own.inside, std::max(own.between, longest)),
                    phase.ring.time(std::max(own.inside, longest), own.between));
  });
}

Seconds private_collective_time(const program::Job& job, const program::Group& group,
                                const program::CollectiveCost& cost) {
  return total(cost, [&](const program::Phase& phase) {
    SendingTimes times;
    for (const program::RingFlow& ring : group.flows) {
      for (const program::Hop& hop : ring.flow.route) {
        const BytesPerSecond rate = job.links[hop.link].capacity() / static_cast<double>(hop.weight);
        times.see(ring, whole_bytes(phase.bytes_of(ring)) / rate);
      }
    }
    return phase.ring.time(times.inside, times.between);
  });
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

}  // namespace trainsim::engine
