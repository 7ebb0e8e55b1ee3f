// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/program.hpp"

namespace trainsim::memory {

/// A tensor that is alive.
struct LiveTensor {
  std::string name;
  program::MemoryCategory category = program::MemoryCategory::kTemporary;
  /// Of the slot that allocated it; -1 for one that no micro-batch owns.
  std::int32_t micro_batch = -1;
  Bytes bytes = 0;
};

/// Memory while one slot runs, or while what is between two slots does.
struct MemoryPoint {
  /// -1 outside slots.
  std::int32_t slot = -1;
  Bytes begin = 0;
  Bytes peak = 0;
  Bytes end = 0;
  /// How much of the slot's compute time had passed when the peak was first reached (0 to 1); 0 outside
  /// slots.
  double peak_share = 0;
};

/// What a rank that runs a program has allocated over a step.
struct Profile {
  Bytes peak = 0;
  /// Slot of the peak, -1 outside slots, and how much of the slot's compute time had passed (0 to 1).
  std::int32_t peak_slot = -1;
  double peak_share = 0;
  /// Index into `curve`.
  std::size_t peak_point = 0;
  /// By category: at the peak, when the step begins and after it has ended, and the most that each category
  /// alone ever has.
  program::MemoryByCategory at_peak{};
  program::MemoryByCategory at_end{};
  program::MemoryByCategory largest{};
  /// What is alive at the peak, largest first.
  std::vector<LiveTensor> alive_at_peak;
  /// In the order of the step.
  std::vector<MemoryPoint> curve;
};

/// Replays a program's allocations and frees in the order of its compute stream, which is that of the host.
/// Throws std::logic_error if something is freed that is not there: an error of the lowering.
Profile replay(const program::Program& program);

}  // namespace trainsim::memory
