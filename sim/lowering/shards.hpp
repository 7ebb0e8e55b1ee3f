// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/lowering/emitter.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// A rank's share of `count` that several ranks have, rounded up.
std::int64_t share_of(std::int64_t count, std::int64_t ranks);

/// Trained parameters of a rank by weight, in the order of the model, and how many ranks share their
/// optimizer state.
struct Owned {
  std::int64_t parameters = 0;
  std::vector<std::int64_t> weights;
  std::int64_t ranks = 1;
};

/// Weights as InternEvo deals them out: whole ones, the largest first, each to the rank that has fewest
/// parameters so far. Ranks that get none are left out (hybrid_zero_optim.py, `_partition_param_list`).
std::vector<std::vector<std::int64_t>> dealt_out(const Owned& owned);

/// Parameters of the pieces that the optimizer of the fullest rank works on: a piece of every weight for
/// FSDP, whole weights for InternEvo's ZeRO-1, else a stretch of weights from the model's end, where
/// contiguous buffers begin.
std::vector<std::int64_t> shard_pieces(const plan::ParallelPlan& plan, const Owned& owned);

/// All parameters of these pieces.
std::int64_t fullest_shard(const plan::ParallelPlan& plan, const Owned& owned);

/// What an optimizer allocates for its step, beside its state: copies of gradients in fp32 where they are
/// kept in less. InternEvo copies gradients one by one for their norm, then all of them to one tensor, and
/// that to fp32 (with FSDP one by one); Adam's square roots and denominators are as large again, twice.
class OptimizerBuffers {
 public:
  OptimizerBuffers(const plan::ParallelPlan& plan, std::vector<std::int64_t> pieces, Emitter& emit);
  /// Before the step's kernels, and after them.
  void begin();
  void end();

 private:
  /// A tensor of `bytes` per parameter for each piece, or one for all.
  std::vector<std::pair<std::uint32_t, Bytes>> tensors(const char* name, std::int64_t bytes, bool each);
  void allocate(const std::vector<std::pair<std::uint32_t, Bytes>>& tensors);
  void free(const std::vector<std::pair<std::uint32_t, Bytes>>& tensors);

  const plan::ParallelPlan& plan_;
  std::vector<std::int64_t> pieces_;
  Emitter& emit_;
  std::vector<std::pair<std::uint32_t, Bytes>> held_;
};

}  // namespace trainsim::lowering
