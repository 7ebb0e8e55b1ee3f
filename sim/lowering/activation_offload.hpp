// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/lowering/host.hpp"
#include "sim/lowering/tape_emitter.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Moves what the first layers have kept for backward to the host's memory while forward goes on, and back
/// while backward goes on. Does nothing when the plan offloads no layer.
///
/// The copies are spread over all layers, as Transformer Engine's AsyncDoubleBufferGroupOffloadHandler
/// spreads them (transformer_engine/pytorch/cpu_offload_v1.py): the n-th layer's memory is free, and the copy
/// of the next layer begins, at the end of forward of the layer that closes its window; in backward the n-th
/// layer comes back from the beginning of that layer on. Compute waits where a copy takes longer than its
/// window.
class ActivationOffload {
 public:
  /// `layers` of the stage; `memory` of each of them, which must outlive the object.
  ActivationOffload(const plan::ParallelPlan& plan, std::int64_t layers, std::vector<TapeEmitter>& memory,
                    HostSide& host, Emitter& emit);

  /// At the end of a layer's forward, first to last, and at the beginning of its backward, last to first.
  void after_forward(std::int64_t layer);
  void before_backward(std::int64_t layer);

 private:
  Keep kept(std::int64_t layer) const;
  std::uint32_t copy(std::int64_t layer, program::Stream direction);
  TapeEmitter& memory_of(std::int64_t layer) { return memory_[static_cast<std::size_t>(layer)]; }

  const plan::ParallelPlan& plan_;
  std::vector<TapeEmitter>& memory_;
  HostSide& host_;
  Emitter& emit_;
  std::int64_t layers_;
  /// By offloaded layer: the one that closes its window. The last is the last of all.
  std::vector<std::int64_t> windows_;
  /// Offloaded layers whose device memory is free.
  std::int64_t away_ = 0;
  /// When the copy ends that was started last.
  std::uint32_t copied_ = 0;
};

/// Layers that close the windows of the first `offloaded` of `layers` layers: as even as possible, longer
/// ones first. REQUIRES: offloaded < layers.
std::vector<std::int64_t> offload_windows(std::int64_t offloaded, std::int64_t layers);

}  // namespace trainsim::lowering
