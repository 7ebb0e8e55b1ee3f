// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::schedule {

/// What a slot computes. Backward includes the weight gradients unless the schedule has weight slots.
enum class SlotKind : std::uint8_t { kForward, kBackward, kWeight };

/// One turn of one stage: a pass of one micro-batch through one of its chunks.
struct Slot {
  SlotKind kind = SlotKind::kForward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  bool operator==(const Slot&) const = default;
};

/// A pipeline schedule as data: which slots each stage runs, in order.
struct Schedule {
  /// Pipeline stages p, chunks per stage v, micro-batches m; all >= 1.
  std::int64_t stages = 1;
  std::int64_t chunks = 1;
  std::int64_t micro_batches = 1;
  /// slots[stage] is that stage's order of execution.
  std::vector<std::vector<Slot>> slots;

  /// Position in the model (0 = first) of a stage's chunk: chunk * p + stage.
  std::int64_t virtual_stage(std::int64_t stage, std::int64_t chunk) const { return chunk * stages + stage; }
  /// The stage that holds a virtual stage.
  std::int64_t stage_of(std::int64_t virtual_stage) const { return virtual_stage % stages; }
  /// The chunk number of a virtual stage on its stage.
  std::int64_t chunk_of(std::int64_t virtual_stage) const { return virtual_stage / stages; }
};

/// A slot together with the stage that runs it.
struct StagedSlot {
  std::int64_t stage = 0;
  Slot slot;
  bool operator==(const StagedSlot&) const = default;
};

/// What must have run before a slot may start. F needs F of the virtual stage before; B needs F of its own
/// virtual stage and B of the one after; W needs its own B. Pipeline ends have fewer needs, hence the
/// optionals.
std::array<std::optional<StagedSlot>, 2> dependencies(const Schedule& schedule, const StagedSlot& at);

/// All forwards, then all backwards (Huang et al. 2019), both in ascending order of micro-batches as drawn by
/// Narayanan et al. 2021 (arXiv 2104.04473, figure 3). Legal for every p, m >= 1.
Schedule gpipe(std::int64_t stages, std::int64_t micro_batches);
/// One-forward-one-backward with p - stage - 1 warm-up forwards (Narayanan et al. 2021, arXiv 2104.04473).
Schedule one_f_one_b(std::int64_t stages, std::int64_t micro_batches);
/// Interleaved 1F1B in Megatron-LM's order; with one chunk it is plain 1F1B.
/// REQUIRES: micro_batches % stages == 0 when chunks > 1.
Schedule interleaved(std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches);
/// Zero-bubble schedules of Qi et al. 2023 (arXiv 2401.10241), section 2: 1F1B whose weight gradients are put
/// off. H1 keeps 1F1B's warm-up, so that stage i (from 0) holds p - i micro-batches and weight gradients of i
/// more; its bubble is (p-1)(T_F + T_B - T_W), T_B being the input gradients. H2 fills the bubble with as
/// many forwards again: 2(p - i) - 1 micro-batches, weight gradients of 2i more, and a bubble of (p-1)(T_F +
/// T_B - 2 T_W); stages then have none of their own if the three are equal and m >= 2p - 1. Legal for every
/// p, m >= 1.
Schedule zero_bubble_h1(std::int64_t stages, std::int64_t micro_batches);
Schedule zero_bubble_h2(std::int64_t stages, std::int64_t micro_batches);
/// The schedule that a legal plan asks for.
Schedule build(const plan::ParallelPlan& plan);

/// Proves that a schedule is complete (every micro-batch passes every chunk forward and backward exactly
/// once) and free of deadlock (its slots can be run to the end when each waits for the slots it depends on).
/// The message of a problem names the missing or double slot, or the cycle of slots that wait for each other.
Problems check(const Schedule& schedule);

/// Bubble ratio of equal stages with free communication, as a share of the whole time (docs/output.md):
/// (p-1)/(m+p-1) for GPipe and 1F1B, (p-1)/(v*m+p-1) for interleaved. For zero-bubble schedules with at least
/// p (H1) or 2p - 1 (H2) micro-batches, and as long forwards, input gradients and weight gradients, it is
/// (p-1)/(3m+p-1); what separates the two is that H2's stages only begin and end at different times. Nothing
/// when there is no closed form.
std::optional<double> bubble_ratio_theory(const plan::ParallelPlan& plan);

/// Largest number of forwards whose backward has not run yet on a stage, in whole-stage micro-batches
/// (chunk passes divided by v): p - stage for 1F1B, m for GPipe.
double peak_in_flight(const Schedule& schedule, std::int64_t stage);

}  // namespace trainsim::schedule
