// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/simgrid/platform.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <simgrid/kernel/routing/NetPoint.hpp>

namespace trainsim::engine {

namespace sg4 = simgrid::s4u;

sg4::Host* FlowZone::add_port(const std::string& name,
                              std::vector<simgrid::kernel::resource::StandardLinkImpl*> links) {
  sg4::Host* host = create_host(name, {1.0});
  host->seal();
  const std::size_t id = host->get_netpoint()->id();
  if (routes_.size() <= id) routes_.resize(id + 1);
  routes_[id] = std::move(links);
  return host;
}

void FlowZone::get_local_route(const simgrid::kernel::routing::NetPoint* /*source*/,
                               const simgrid::kernel::routing::NetPoint* target,
                               simgrid::kernel::routing::Route* into, double* latency) {
  into->link_list_ = routes_[target->id()];
  // Latency is paid by the stream before the flow starts, because a collective pays it once per step; and
  // CM02 would otherwise share links in inverse proportion to it.
  if (latency != nullptr) *latency += 0.0;
}

Platform::Platform(const program::Job& job, bool channels) : zone_(new FlowZone("cluster")) {
  for (std::size_t i = 0; i < job.links.size(); ++i) {
    sg4::Link* link = zone_->create_link("link-" + std::to_string(i), {job.links[i].capacity()});
    links_.push_back(link->set_latency(0.0)->seal());
  }
  for (const program::Rank& rank : job.ranks) {
    hosts_.push_back(zone_->add_port("rank-" + std::to_string(rank.id), {}));
  }
  for (const program::Group& group : job.groups) {
    group_ports_.emplace_back();
    for (const program::RingFlow& ring : group.flows)
      group_ports_.back().push_back(port(ring.flow, channels ? channel(job, ring) : nullptr));
  }
  for (const program::Rank& rank : job.ranks) {
    for (const program::Peer& peer : rank.peers) peer_ports_.push_back(port(peer.flow, nullptr));
  }
  zone_->seal();
}

sg4::Link* Platform::channel(const program::Job& job, const program::RingFlow& ring) {
  if (ring.between_nodes || ring.flow.route.empty()) return nullptr;
  BytesPerSecond rate = std::numeric_limits<double>::infinity();
  for (const program::Hop& hop : ring.flow.route)
    rate = std::min(rate, job.links[hop.link].bandwidth * ring.share / (hop.inside_load + hop.between_load));
  sg4::Link* link = zone_->create_link("channel-" + std::to_string(ports_), {rate});
  return link->set_latency(0.0)->seal();
}

sg4::Host* Platform::port(const program::Flow& flow, const sg4::Link* channel) {
  if (flow.route.empty()) return nullptr;
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> links;
  if (channel != nullptr) links.push_back(channel->get_impl());
  for (const program::Hop& hop : flow.route)
    links.insert(links.end(), hop.weight, links_[hop.link]->get_impl());
  return zone_->add_port("port-" + std::to_string(ports_++), std::move(links));
}

std::vector<std::string> engine_arguments() {
  return {"trainsim", "--log=root.thres:critical", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0",
          "--cfg=network/weight-S:0", "--cfg=network/crosstraffic:0", "--cfg=surf/precision:1e-12",
          // No guard pages: each would be a memory mapping of its own, of which a process has 65530.
          "--cfg=contexts/guard-size:0", "--cfg=contexts/stack-size:64"};
}

}  // namespace trainsim::engine
