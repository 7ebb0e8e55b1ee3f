// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/collective.hpp"
#include "sim/base/units.hpp"
#include "sim/program/program.hpp"

namespace trainsim::program {

/// What communication is for.
enum class TrafficKind : std::uint8_t { kTensor, kData, kEmbedding, kExpert, kPipeline, kContext };
inline constexpr int kTrafficKinds = 6;
/// Name for tables and JSON: "tensor", "data", "embedding", "expert", "pipeline", "context".
const char* to_string(TrafficKind kind);

/// Transfers of one kind, operation, algorithm and protocol in a step, mean over ranks.
struct Transfers {
  TrafficKind kind = TrafficKind::kTensor;
  /// "all_reduce", "all_gather", "reduce_scatter" or "send".
  std::string op;
  /// Meaningless for a send.
  Algorithm algorithm = Algorithm::kRing;
  WireProtocol protocol = WireProtocol::kSimple;
  double calls = 0;
  /// Of the tensors, whatever a member sends of them.
  double tensor_bytes = 0;
  /// What they take in all with nothing else on the network.
  Seconds alone = 0;
};

/// Who communicates: communicators of one kind with members on these stages, or the pipeline transfers that
/// these stages send.
struct Parties {
  /// As a GroupKind is called, or "pipeline".
  std::string name;
  /// Sorted.
  std::vector<std::int64_t> stages;

  bool operator==(const Parties&) const = default;
  bool operator<(const Parties& other) const {
    return std::tie(name, stages) < std::tie(other.name, other.stages);
  }
};

/// Collectives of one operation, algorithm and protocol, or messages, of communicators that differ in their
/// replica alone; mean over their ranks.
struct GroupTransfers {
  TrafficKind kind = TrafficKind::kTensor;
  Parties of;
  /// Members of a communicator, and nodes that they lie on; of messages their two ends.
  std::int64_t size = 1;
  std::int64_t nodes = 1;
  /// All ranks that take part, in all such communicators.
  std::int64_t ranks = 0;
  /// "all_reduce", "send", ...
  std::string op;
  /// Meaningless for messages.
  Algorithm algorithm = Algorithm::kRing;
  WireProtocol protocol = WireProtocol::kSimple;
  double calls = 0;
  /// Of the tensors, and what a member sends of them (bytes_per_member).
  double tensor_bytes = 0;
  double sent_bytes = 0;
  /// With nothing else on the network; and as it was, from when the last member was ready.
  Seconds alone = 0;
  Seconds busy = 0;
  /// What compute waited for: mean, and of the rank that waited most. Of messages both ends may wait.
  Seconds exposed = 0;
  Seconds longest_exposed = 0;
  /// What holds a large one up when it is alone: the slowest link, or "latency" where that takes longer.
  std::string limit;

  /// What was hidden behind compute.
  Seconds hidden() const { return busy > exposed ? busy - exposed : 0; }
  /// Bus bandwidth as nccl-tests defines it: what a member sends over the time that it takes.
  BytesPerSecond bus_bandwidth() const { return busy > 0 ? sent_bytes / busy : 0; }
};

/// What of a link's bytes is somebody's.
struct LinkUser {
  TrafficKind kind = TrafficKind::kTensor;
  Parties by;
  double bytes = 0;
};

/// What crosses a link in a step, in bytes by TrafficKind.
struct LinkTraffic {
  std::string name;
  BytesPerSecond bandwidth = 0;
  std::array<double, kTrafficKinds> bytes{};
  /// Who sends them, by kind and then by stage.
  std::vector<LinkUser> users = {};

  double total() const {
    double sum = 0;
    for (const double part : bytes) sum += part;
    return sum;
  }
};

/// How busy a link is over the step.
struct LinkCurve {
  /// As in LinkTraffic.
  std::string name;
  /// By TrafficKind: share of the link's bandwidth that is used, in equal parts of the step; none for kinds
  /// that do not cross it.
  std::array<std::vector<double>, kTrafficKinds> busy;
};

/// Communication of a step.
struct Traffic {
  /// In the order of TrafficKind.
  std::vector<Transfers> transfers;
  /// The same as it was simulated, by communicator.
  std::vector<GroupTransfers> groups;
  /// Links that something crosses; one of each class of equal links.
  std::vector<LinkTraffic> links;
};

}  // namespace trainsim::program
