// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/program/program.hpp"

namespace trainsim::memory {

/// What the caching allocator holds for a program.
struct Reservation {
  Bytes peak_allocated = 0;
  /// More than the capacity if the program does not fit, be it for fragments only.
  Bytes peak_reserved = 0;
  /// How often cached memory is given back in a step.
  std::int64_t retries = 0;
};

/// Replays two steps of a program through the caching allocator: in the first the optimizer's state appears
/// only at its end, as it does in PyTorch, so that the second has to live with the segments that the first
/// has cut. Micro-batches in the middle of a long step repeat what those before did and are left out.
/// `capacity` bytes are on the device, 0 = any number.
Reservation reserve(const program::Program& program, Segments segments, Bytes capacity = 0);

}  // namespace trainsim::memory
