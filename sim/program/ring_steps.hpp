// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/base/units.hpp"

namespace trainsim::program {

/// Steps in which parts of a tensor go around a ring: in each every member sends one to the next, once it has
/// sent the one before and has received the one that it passes on.
struct RingSteps {
  /// 0: nothing goes around a ring.
  std::int64_t count = 0;
  /// Members, and nodes that they lie on. Each node has about as many.
  std::int64_t size = 1;
  std::int64_t nodes = 1;
  /// What each step adds inside a node and between nodes.
  Seconds latency = 0;
  Seconds node_latency = 0;

  /// What the steps add in NCCL's tuning model (src/graph/tuning.cc): their latencies one after the other. As
  /// many as in a ring over the nodes alone cross between nodes, the rest stay inside.
  Seconds added_latency() const;
  /// From the first byte to the end, where the bytes that a member sends need `inside` to the next one in its
  /// node and `between` to one in another: the time of the slower kind, and latencies that do not hide behind
  /// it. Grows with each of its inputs.
  ///
  /// It is the longest way through the steps (max-plus algebra; Baccelli et al. 1992): `count` times a member
  /// sends, after itself or after the one before it in the ring. Sending costs inside / count or between /
  /// count, handing on the latency besides. Such a way waits at the slowest edge for as long as going on does
  /// not cost more. Of edges that are all alike it is count * (time per step + latency).
  Seconds time(Seconds inside, Seconds between) const;
};

}  // namespace trainsim::program
