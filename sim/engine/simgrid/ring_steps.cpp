// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/simgrid/ring_steps.hpp"

#include <deque>
#include <stdexcept>
#include <vector>

#include <simgrid/s4u.hpp>

#include "sim/engine/flow_time.hpp"

namespace trainsim::engine {

namespace {

namespace sg4 = simgrid::s4u;

/// One edge of a ring: what its sender has received, and when that can be passed on.
struct Edge {
  sg4::SemaphorePtr received = sg4::Semaphore::create(0);
  std::deque<Seconds> usable;
};

}  // namespace

std::int64_t run_ring_steps(const Platform& platform, const program::Job& job, std::size_t index,
                            const program::Phase& phase) {
  const program::Group& group = job.groups[index];
  const auto size = static_cast<std::size_t>(group.size);
  if (group.flows.size() % size != 0) throw std::logic_error("ring steps need flows that were kept apart");
  const std::int64_t steps = phase.ring.count;
  std::vector<Edge> edges(group.flows.size());
  std::vector<sg4::ActorPtr> senders;
  sg4::Host* host = platform.host(group.members.front());
  for (std::size_t i = 0; i < group.flows.size(); ++i) {
    const std::size_t next = i / size * size + (i + 1) % size;
    senders.push_back(sg4::Actor::create("ring", host, [&, i, next] {
      const program::RingFlow& flow = group.flows[i];
      const double bytes = whole_bytes(phase.bytes_of(flow) / static_cast<double>(steps));
      const Seconds latency = flow.between_nodes ? phase.ring.node_latency : phase.ring.latency;
      for (std::int64_t step = 0; step < steps; ++step) {
        if (step > 0) {
          edges[i].received->acquire();
          const Seconds usable = edges[i].usable.front();
          edges[i].usable.pop_front();
          if (usable > sg4::Engine::get_clock()) sg4::this_actor::sleep_until(usable);
        }
        sg4::Host* port = platform.group_ports(index)[i];
        if (port != nullptr && bytes > 0) sg4::Comm::sendto(host, port, static_cast<std::uint64_t>(bytes));
        edges[next].usable.push_back(sg4::Engine::get_clock() + latency);
        edges[next].received->release();
      }
      // The last part is on its way for as long as any other.
      sg4::this_actor::sleep_for(latency);
    }));
  }
  for (const sg4::ActorPtr& sender : senders) sender->join();
  return steps * static_cast<std::int64_t>(group.flows.size());
}

}  // namespace trainsim::engine
