// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/training/checkpointing.hpp"

namespace trainsim::training {

/// Where the wall time of a run went; the parts add up to it.
struct WallTime {
  /// Steps that count.
  Seconds work = 0;
  /// Training stopped for checkpoints that were reached.
  Seconds checkpoints = 0;
  /// From a checkpoint that training goes back to until the failure: done in vain.
  Seconds lost = 0;
  /// Restarts, those that failed themselves included.
  Seconds restarts = 0;
  Seconds total() const { return work + checkpoints + lost + restarts; }
};

/// One run as it may go.
struct SimulatedRun {
  WallTime wall;
  std::int64_t failures = 0;
};

/// Runs through segments with failures drawn from a Poisson process in wall time, restarts included. Each
/// sends training back to the last checkpoint that was written `write` seconds after its stall began, or
/// earlier. One run after the other may be drawn from `random`.
SimulatedRun simulate_failures(const std::vector<Segments>& segments, Seconds write, const Hazard& hazard,
                               std::mt19937_64& random);

}  // namespace trainsim::training
