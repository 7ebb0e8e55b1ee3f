// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/lowering/emitter.hpp"
#include "sim/lowering/tape.hpp"

namespace trainsim::lowering {

/// Emits the memory of a pass under names of its own, such as "layer 3: qkv output".
class TapeEmitter {
 public:
  /// `traces` and `emit` must outlive the emitter.
  TapeEmitter(const TapeTraces& traces, std::string prefix, Emitter& emit)
      : traces_(&traces), prefix_(std::move(prefix)), emit_(&emit), tensors_(traces.texts.size(), kUnnamed) {}

  void forward(Keep keep);
  /// Forward run again; the input is there already if it was kept.
  void again(bool input_kept);
  void backward() { emit(traces_->backward); }
  /// What forward has kept goes, and comes back for backward; and its bytes.
  void leave(Keep keep);
  void come_back(Keep keep) { emit(kept(keep)); }
  Bytes kept_bytes(Keep keep) const;
  /// Backward in two parts.
  void input_gradients() { emit(traces_->input_gradients); }
  void weight_gradients() { emit(traces_->weight_gradients); }

 private:
  static constexpr std::uint32_t kUnnamed = 0xffffffff;
  const MemoryTrace& kept(Keep keep) const;
  void emit(const MemoryTrace& trace);

  const TapeTraces* traces_;
  std::string prefix_;
  Emitter* emit_;
  /// By name of the tape: the program's number of the tensor.
  std::vector<std::uint32_t> tensors_;
};

}  // namespace trainsim::lowering
