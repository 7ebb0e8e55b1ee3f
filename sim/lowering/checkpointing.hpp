// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/lowering/tape.hpp"
#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace trainsim::lowering {

/// What layer `index` of a chunk keeps of a pass that recomputes as the plan says.
Keep kept_of(const plan::Recompute& recompute, std::int64_t index);

/// What a stage keeps of its layers, pass by pass, and so what backward runs again.
///
/// Passes are counted in the order of their forwards. In each window of as many as the stage has in flight at
/// most, the first `partial_micro_batches` recompute fewer layers (forward_backward_pipelining_… of
/// Megatron-LM's schedules.py; Korthikanti et al. 2022, appendix C).
class Checkpointing {
 public:
  Checkpointing(const plan::Recompute& recompute, const schedule::Schedule& schedule, std::int64_t stage);

  /// What layer `index` of a slot's chunk keeps.
  Keep kept(const schedule::Slot& slot, std::int64_t index) const;
  /// Whether selective recomputation leaves out a layer, which then runs nothing again.
  bool leaves_out(const schedule::Slot& slot, std::int64_t index) const;

 private:
  bool partial(const schedule::Slot& slot) const;

  plan::Recompute recompute_;
  std::int64_t micro_batches_;
  /// By chunk and micro-batch; empty when all passes are alike.
  std::vector<bool> partial_;
};

}  // namespace trainsim::lowering
