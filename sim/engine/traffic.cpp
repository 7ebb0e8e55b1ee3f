// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/traffic.hpp"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/engine/collective_costs.hpp"
#include "sim/engine/flow_time.hpp"

namespace trainsim::engine {

namespace {

using program::CollectiveOp;
using program::GroupKind;
using program::Instruction;
using program::Opcode;
using program::TrafficKind;

/// How often a program runs each collective, and sends each message.
struct Calls {
  std::map<std::tuple<GroupKind, CollectiveOp, double>, std::int64_t> collectives;
  std::map<std::pair<program::PeerKind, double>, std::int64_t> sends;
};

Calls calls_of(const program::Program& program) {
  Calls calls;
  for (const auto& stream : program.streams) {
    for (const Instruction& instruction : stream) {
      if (instruction.op == Opcode::kCollective) {
        ++calls.collectives[{instruction.group, instruction.collective, instruction.amount}];
      } else if (instruction.op == Opcode::kSend) {
        ++calls.sends[{instruction.peer, instruction.amount}];
      }
    }
  }
  return calls;
}

/// Adds up the traffic of one job.
class Counter {
 public:
  explicit Counter(const program::Job& job)
      : job_(job), costs_(job), links_(job.links.size()), users_(job.links.size()) {
    for (const program::Program& program : job.programs) calls_.push_back(calls_of(program));
  }

  program::Traffic count() {
    for (const program::Rank& rank : job_.ranks) add_transfers(rank);
    for (std::size_t group = 0; group < job_.groups.size(); ++group) add_group(group);
    for (const program::Rank& rank : job_.ranks) add_sends(rank);
    program::Traffic traffic;
    for (auto& [key, transfers] : transfers_) traffic.transfers.push_back(std::move(transfers));
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].total() == 0) continue;
      add_users(i);
      traffic.links.push_back(std::move(links_[i]));
    }
    return traffic;
  }

 private:
  /// Who sends something, and a number for it.
  struct User {
    TrafficKind kind = TrafficKind::kTensor;
    std::size_t number = 0;
  };
  using Key = std::tuple<TrafficKind, std::string, Algorithm, WireProtocol>;

  void add(const Key& key, double calls, double bytes, Seconds alone) {
    const auto& [kind, op, algorithm, protocol] = key;
    program::Transfers& transfers =
        transfers_.try_emplace(key, program::Transfers{kind, op, algorithm, protocol, 0, 0, 0}).first->second;
    transfers.calls += calls;
    transfers.tensor_bytes += calls * bytes;
    transfers.alone += calls * alone;
  }

  void add_transfers(const program::Rank& rank) {
    const double weight = static_cast<double>(rank.represents) / static_cast<double>(job_.world_size);
    for (const auto& [call, times] : calls_[rank.program].collectives) {
      const auto& [kind, op, bytes] = call;
      const std::int32_t index = rank.groups[static_cast<std::size_t>(kind)];
      if (index < 0) continue;
      const LoneCost& known = costs_.of(static_cast<std::size_t>(index), op, bytes);
      add({traffic_kind(kind), program::to_string(op), known.cost.algorithm, known.cost.wire},
          weight * static_cast<double>(times), bytes, known.alone);
    }
    for (const auto& [call, times] : calls_[rank.program].sends) {
      const program::Peer& peer = rank.peers[static_cast<std::size_t>(call.first)];
      add({TrafficKind::kPipeline, "send", Algorithm::kRing, WireProtocol::kSimple},
          weight * static_cast<double>(times), call.second,
          peer.latency + lone_flow_time(job_, peer.flow, call.second));
    }
  }

  User user_of(TrafficKind kind, program::Parties parties) {
    const auto entry = numbers_.try_emplace({kind, std::move(parties)}, numbers_.size()).first;
    return {kind, entry->second};
  }

  void add_users(std::size_t link) {
    for (const auto& [key, number] : numbers_) {
      const auto part = users_[link].find(number);
      if (part != users_[link].end()) links_[link].users.push_back({key.first, key.second, part->second});
    }
  }

  /// A flow stands for `weight * divisor` flows over each link on its route.
  void add_flow(const program::Flow& flow, const User& user, double bytes) {
    for (const program::Hop& hop : flow.route) {
      const program::Link& link = job_.links[hop.link];
      program::LinkTraffic& traffic = links_[hop.link];
      traffic.name = link.name;
      traffic.bandwidth = link.bandwidth;
      const double crossing = bytes * static_cast<double>(hop.weight) * static_cast<double>(link.divisor);
      traffic.bytes[static_cast<std::size_t>(user.kind)] += crossing;
      if (crossing > 0) users_[hop.link][user.number] += crossing;
    }
  }

  /// All members of a group run the same collectives.
  void add_group(std::size_t index) {
    const program::Group& group = job_.groups[index];
    const program::Rank& member = job_.ranks[group.members.front()];
    const User user = user_of(traffic_kind(group.kind), parties_of(job_, group));
    for (const auto& [call, times] : calls_[member.program].collectives) {
      const auto& [kind, op, bytes] = call;
      if (kind != group.kind) continue;
      const program::CollectiveCost& cost = costs_.of(index, op, bytes).cost;
      for (const program::RingFlow& ring : group.flows) {
        add_flow(ring.flow, user, static_cast<double>(times) * cost.bytes_of(ring));
      }
    }
  }

  void add_sends(const program::Rank& rank) {
    const User user = user_of(TrafficKind::kPipeline, sender_of(rank));
    for (const auto& [call, times] : calls_[rank.program].sends) {
      const program::Peer& peer = rank.peers[static_cast<std::size_t>(call.first)];
      add_flow(peer.flow, user, static_cast<double>(times) * call.second);
    }
  }

  const program::Job& job_;
  CollectiveCosts costs_;
  std::vector<Calls> calls_;
  std::map<Key, program::Transfers> transfers_;
  std::vector<program::LinkTraffic> links_;
  std::map<std::pair<TrafficKind, program::Parties>, std::size_t> numbers_;
  /// Bytes of users on each link, by their number.
  std::vector<std::map<std::size_t, double>> users_;
};

}  // namespace

TrafficKind traffic_kind(GroupKind group) {
  switch (group) {
    case GroupKind::kTensor:
      return TrafficKind::kTensor;
    case GroupKind::kData:
    case GroupKind::kShard:
    case GroupKind::kReplica:
    case GroupKind::kExpertData:
      return TrafficKind::kData;
    case GroupKind::kContext:
      return TrafficKind::kContext;
    case GroupKind::kExpert:
      return TrafficKind::kExpert;
    case GroupKind::kEmbedding:
      break;
  }
  return TrafficKind::kEmbedding;
}

program::Parties parties_of(const program::Job& job, const program::Group& group) {
  std::set<std::int64_t> stages;
  for (const std::uint32_t member : group.members) stages.insert(job.ranks[member].stage);
  return {program::to_string(group.kind), {stages.begin(), stages.end()}};
}

program::Parties sender_of(const program::Rank& rank) {
  return {program::to_string(TrafficKind::kPipeline), {rank.stage}};
}

program::Traffic count_traffic(const program::Job& job) {
  return Counter(job).count();
}

}  // namespace trainsim::engine
