// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/collective.hpp"
#include "sim/base/units.hpp"
#include "sim/program/program.hpp"

namespace trainsim::program {

/// What communication is for.
enum class TrafficKind : std::uint8_t { kTensor, kData, kEmbedding, kPipeline, kContext };
inline constexpr int kTrafficKinds = 5;
/// Name for tables and JSON: "tensor", "data", "embedding", "pipeline", "context".
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

/// What crosses a link in a step, in bytes by TrafficKind.
struct LinkTraffic {
  std::string name;
  BytesPerSecond bandwidth = 0;
  std::array<double, kTrafficKinds> bytes{};

  double total() const {
    double sum = 0;
    for (const double part : bytes) sum += part;
    return sum;
  }
};

/// Communication of a step.
struct Traffic {
  /// In the order of TrafficKind.
  std::vector<Transfers> transfers;
  /// Links that something crosses; one of each class of equal links.
  std::vector<LinkTraffic> links;
};

}  // namespace trainsim::program
