// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include "sim/program/job.hpp"

namespace trainsim::engine {

/// A SimGrid zone whose routes are the flows of a job. Every flow has a host of its own at its far end (its
/// port), so that the route follows from the destination alone; a routing table would need the square of the
/// hosts.
class FlowZone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  explicit FlowZone(const std::string& name) : NetZoneImpl(name) {}
  /// Adds a port that is reached over these links, one entry per unit of weight.
  simgrid::s4u::Host* add_port(const std::string& name,
                               std::vector<simgrid::kernel::resource::StandardLinkImpl*> links);

 private:
  void get_local_route(const simgrid::kernel::routing::NetPoint* source,
                       const simgrid::kernel::routing::NetPoint* target,
                       simgrid::kernel::routing::Route* into, double* latency) override;

  std::vector<std::vector<simgrid::kernel::resource::StandardLinkImpl*>> routes_;
};

/// The SimGrid side of a job: a host per rank, a port per flow, a link per link.
class Platform {
 public:
  /// Builds everything. With `channels` each ring gets at most its share of the links inside nodes, also
  /// while others are idle: NCCL serves each channel by a thread block of its own, and its search gives a
  /// channel 40 GB/s at most of an A100's NVLinks, 60 of an H100's, 90 of a B200's (src/graph/search.cc).
  /// REQUIRES: an Engine exists and no platform was built in it before; with channels, a job not folded.
  Platform(const program::Job& job, bool channels);

  simgrid::s4u::Host* host(std::size_t rank) const { return hosts_[rank]; }
  /// Ports of a group's flows, in order; null for a flow over no link.
  const std::vector<simgrid::s4u::Host*>& group_ports(std::size_t group) const { return group_ports_[group]; }
  /// Port of a rank's channel to a peer; null when the channel has no link.
  simgrid::s4u::Host* peer_port(std::size_t rank, program::PeerKind peer) const {
    return peer_ports_[rank * program::kPeerKinds + static_cast<std::size_t>(peer)];
  }

 private:
  /// The far end of a flow, reached over `channel` besides if that is not null.
  simgrid::s4u::Host* port(const program::Flow& flow, const simgrid::s4u::Link* channel);
  /// What carries a ring to its next member in the node; null between nodes.
  simgrid::s4u::Link* channel(const program::Job& job, const program::RingFlow& ring);

  FlowZone* zone_;
  std::vector<simgrid::s4u::Link*> links_;
  std::vector<simgrid::s4u::Host*> hosts_;
  std::vector<std::vector<simgrid::s4u::Host*>> group_ports_;
  std::vector<simgrid::s4u::Host*> peer_ports_;
  std::size_t ports_ = 0;
};

/// Command line for SimGrid's Engine, which must not see ours. It asks for lossless, ideally shared links, as
/// NVLink and InfiniBand are: no TCP window, no latency penalty, no cross traffic; and for small stacks.
std::vector<std::string> engine_arguments();

}  // namespace trainsim::engine
