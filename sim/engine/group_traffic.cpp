// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/group_traffic.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "sim/engine/collective_costs.hpp"
#include "sim/engine/flow_time.hpp"
#include "sim/engine/traffic.hpp"

namespace trainsim::engine {

namespace {

using program::CollectiveTime;
using program::GroupTransfers;
using program::Hop;
using program::TrafficKind;

constexpr const char* kLatency = "latency";

/// The slowest of the links that something crosses.
class Slowest {
 public:
  explicit Slowest(const program::Job& job) : job_(job) {}
  void see(const Hop& hop, double bytes) {
    const Seconds time = bytes / job_.links[hop.link].bandwidth;
    if (time <= longest_) return;
    longest_ = time;
    name_ = job_.links[hop.link].name;
  }
  /// The link, or "latency" where what it does not hide of that takes at least as long; `alone` is all that
  /// is crossed with nothing else on the network.
  std::string name(Seconds alone) const { return alone >= 2.0 * longest_ ? kLatency : name_; }

 private:
  const program::Job& job_;
  Seconds longest_ = 0;
  std::string name_;
};

std::string limit_of(const program::Job& job, const program::Group& group, const LoneCost& known) {
  const program::CollectiveCost& cost = known.cost;
  Slowest slowest(job);
  for (const program::RingFlow& ring : group.flows) {
    for (const Hop& hop : ring.flow.route)
      slowest.see(hop, cost.inside() * hop.inside_load + cost.between() * hop.between_load);
  }
  return slowest.name(known.alone);
}

std::string limit_of(const program::Job& job, const program::Peer& peer, double bytes) {
  Slowest slowest(job);
  for (const Hop& hop : peer.flow.route) slowest.see(hop, bytes);
  return slowest.name(peer.latency + lone_flow_time(job, peer.flow, bytes));
}

/// What compute waits for on either end of messages, less the gathers of those that came in parts.
Seconds exposed_messages(const program::RankTimeline& timeline) {
  const auto cause = program::Cause::kPipelineCommunication;
  Seconds exposed = timeline.by_cause[static_cast<std::size_t>(cause)];
  for (const CollectiveTime& entry : timeline.collectives) {
    if (entry.cause == cause) exposed -= entry.exposed;
  }
  return std::max(0.0, exposed);
}

/// What a rank sends to its neighbours.
GroupTransfers messages_of(const program::Job& job, const program::Rank& rank) {
  GroupTransfers own;
  own.kind = TrafficKind::kPipeline;
  own.of = sender_of(rank);
  own.size = 2;
  own.op = "send";
  double largest = 0;
  for (const auto& stream : job.programs[rank.program].streams) {
    for (const program::Instruction& instruction : stream) {
      if (instruction.op != program::Opcode::kSend) continue;
      const program::Peer& peer = rank.peers[static_cast<std::size_t>(instruction.peer)];
      if (peer.between_nodes) own.nodes = 2;
      ++own.calls;
      own.tensor_bytes += instruction.amount;
      own.alone += peer.latency + lone_flow_time(job, peer.flow, instruction.amount);
      if (instruction.amount <= largest) continue;
      largest = instruction.amount;
      own.limit = limit_of(job, peer, instruction.amount);
    }
  }
  own.sent_bytes = own.tensor_bytes;
  return own;
}

/// Adds up what ranks did, by what they did it with.
class Table {
 public:
  Table(const program::Job& job, const program::Timeline& timeline)
      : job_(job), timeline_(timeline), costs_(job) {}

  std::vector<GroupTransfers> count() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      for (const CollectiveTime& entry : timeline_.ranks[rank].collectives) add(rank, own_of(rank, entry));
      GroupTransfers messages = messages_of(job_, job_.ranks[rank]);
      messages.busy = timeline_.ranks[rank].sending;
      messages.exposed = exposed_messages(timeline_.ranks[rank]);
      if (messages.calls > 0) add(rank, messages);
    }
    std::vector<GroupTransfers> list;
    list.reserve(rows_.size());
    for (auto& [key, row] : rows_) list.push_back(mean(std::move(row.sums)));
    return list;
  }

 private:
  using Key = std::tuple<TrafficKind, program::Parties, std::int64_t, std::int64_t, std::string, Algorithm,
                         WireProtocol>;
  struct Row {
    /// Over ranks.
    GroupTransfers sums;
    /// The rank that was added last, and what it waited in this row so far.
    std::size_t rank = 0;
    Seconds exposed = 0;
    /// Of the calls of one size that took most in all, which say what limits the row.
    Seconds most = 0;
  };

  /// What one entry of a rank's timeline was.
  GroupTransfers own_of(std::size_t rank, const CollectiveTime& entry) {
    const auto kind = static_cast<std::size_t>(entry.group);
    const auto index = static_cast<std::size_t>(job_.ranks[rank].groups[kind]);
    const program::Group& group = job_.groups[index];
    const LoneCost& known = costs_.of(index, entry.op, entry.bytes);
    const auto calls = static_cast<double>(entry.calls);
    GroupTransfers own;
    own.kind = traffic_kind(entry.group);
    own.of = parties_of(job_, group);
    own.size = group.size;
    own.nodes = group.nodes;
    own.op = program::to_string(entry.op);
    own.algorithm = known.cost.algorithm;
    own.protocol = known.cost.wire;
    own.calls = calls;
    own.tensor_bytes = calls * entry.bytes;
    own.sent_bytes = calls * program::bytes_per_member(entry.op, group.size, entry.bytes);
    own.alone = calls * known.alone;
    own.busy = entry.busy;
    own.exposed = entry.exposed;
    own.limit = limit_of(job_, group, known);
    return own;
  }

  void add(std::size_t rank, const GroupTransfers& own) {
    const std::int64_t represents = job_.ranks[rank].represents;
    const auto weight = static_cast<double>(represents);
    Row& row = rows_[{own.kind, own.of, own.size, own.nodes, own.op, own.algorithm, own.protocol}];
    GroupTransfers& sums = row.sums;
    if (sums.ranks == 0 || row.rank != rank) {
      sums.ranks += represents;
      row.exposed = 0;
    }
    row.rank = rank;
    row.exposed += own.exposed;
    if (own.busy > row.most || sums.limit.empty()) sums.limit = own.limit;
    row.most = std::max(row.most, own.busy);
    sums.calls += weight * own.calls;
    sums.tensor_bytes += weight * own.tensor_bytes;
    sums.sent_bytes += weight * own.sent_bytes;
    sums.alone += weight * own.alone;
    sums.busy += weight * own.busy;
    sums.exposed += weight * own.exposed;
    sums.longest_exposed = std::max(sums.longest_exposed, row.exposed);
    std::tie(sums.kind, sums.of, sums.size, sums.nodes, sums.op, sums.algorithm, sums.protocol) =
        std::tie(own.kind, own.of, own.size, own.nodes, own.op, own.algorithm, own.protocol);
  }

  static GroupTransfers mean(GroupTransfers sums) {
    const auto ranks = static_cast<double>(sums.ranks);
    for (double* sum :
         {&sums.calls, &sums.tensor_bytes, &sums.sent_bytes, &sums.alone, &sums.busy, &sums.exposed})
      *sum /= ranks;
    return sums;
  }

  const program::Job& job_;
  const program::Timeline& timeline_;
  CollectiveCosts costs_;
  std::map<Key, Row> rows_;
};

}  // namespace

std::vector<GroupTransfers> group_traffic(const program::Job& job, const program::Timeline& timeline) {
  return Table(job, timeline).count();
}

}  // namespace trainsim::engine
