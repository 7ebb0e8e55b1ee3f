// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/collective.hpp"
#include "sim/base/units.hpp"
#include "sim/program/program.hpp"

namespace trainsim::report {

/// A collective of one size.
struct BenchRow {
  /// Of the whole tensor, as nccl-tests counts: what all members hold after a gather or before a scatter.
  double bytes = 0;
  Seconds time = 0;
  Algorithm algorithm = Algorithm::kRing;
  WireProtocol protocol = WireProtocol::kSimple;
  /// What was measured, to compare with.
  std::optional<Seconds> measured;
};

/// A simulated run of nccl-tests.
struct Bench {
  std::string cluster;
  program::CollectiveOp op = program::CollectiveOp::kAllReduce;
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  std::vector<BenchRow> rows;
};

/// Bytes per second of a collective, and the same times what a ring member sends per byte of the tensor,
/// 2(P-1)/P or (P-1)/P: the bus bandwidth (nccl-tests, doc/PERFORMANCE.md).
double algorithm_bandwidth(const BenchRow& row);
double bus_bandwidth(const Bench& bench, const BenchRow& row);

/// A table for people.
std::string to_text(const Bench& bench);
/// JSON that ends in a newline; times in seconds, bandwidths in GB/s (10^9 bytes).
std::string to_json(const Bench& bench);
/// One line per size.
std::string to_csv(const Bench& bench);

}  // namespace trainsim::report
