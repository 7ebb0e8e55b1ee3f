// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/tape_emitter.hpp"

#include <numeric>

namespace trainsim::lowering {

void TapeEmitter::forward(Keep keep) {
  switch (keep) {
    case Keep::kAll:
      return emit(traces_->forward);
    case Keep::kInput:
      return emit(traces_->forward_keeping_input);
    case Keep::kNothing:
      return emit(traces_->forward_keeping_nothing);
  }
}

void TapeEmitter::again(bool input_kept) {
  emit(input_kept ? traces_->again_after_kept_input : traces_->again);
}

/// Nothing is left of a forward that lies between two checkpoints.
const MemoryTrace& TapeEmitter::kept(Keep keep) const {
  static const MemoryTrace nothing;
  if (keep == Keep::kNothing) return nothing;
  return keep == Keep::kAll ? traces_->kept : traces_->kept_input;
}

void TapeEmitter::leave(Keep keep) {
  MemoryTrace frees = kept(keep);
  for (MemoryChange& change : frees) change.allocates = false;
  emit(frees);
}

Bytes TapeEmitter::kept_bytes(Keep keep) const {
  const MemoryTrace& trace = kept(keep);
  return std::accumulate(trace.begin(), trace.end(), Bytes{0},
                         [](Bytes sum, const MemoryChange& change) { return sum + change.bytes; });
}

void TapeEmitter::emit(const MemoryTrace& trace) {
  for (const MemoryChange& change : trace) {
    std::uint32_t& tensor = tensors_[change.name];
    if (tensor == kUnnamed) tensor = emit_->tensor(prefix_ + traces_->texts[change.name]);
    if (change.allocates) {
      emit_->allocate(change.category, tensor, change.bytes);
    } else {
      emit_->free(change.category, tensor, change.bytes);
    }
  }
}

}  // namespace trainsim::lowering
