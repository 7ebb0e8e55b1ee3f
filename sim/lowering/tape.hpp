// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/program.hpp"

namespace trainsim::lowering {

/// A tensor of a tape: its place in the order of creation.
using TensorId = std::size_t;
inline constexpr TensorId kNoTensor = std::numeric_limits<TensorId>::max();

/// What an operation leaves for its backward, and what backward runs again for it.
enum class Repeat : std::uint8_t {
  /// Keeps all it needs.
  kNever,
  /// Runs again together with its neighbours of the same kind; the chain keeps only what enters it
  /// (checkpointing).
  kChain,
  /// Runs again by itself just before somebody's backward needs its output, which is dropped after forward
  /// (Megatron-LM's output-discarding checkpoint; what a compiler fuses into backward).
  kOutput,
};

/// One step of a forward pass, as automatic differentiation sees it.
struct Operation {
  std::string name;
  /// Inputs whose gradients are tensors of their own.
  std::vector<TensorId> reads;
  /// Inputs whose gradient is that of the output: terms of an addition.
  std::vector<TensorId> adds;
  /// Outputs; the first is the one that has a gradient.
  std::vector<TensorId> writes;
  /// Inputs and outputs that backward needs.
  std::vector<TensorId> keeps;
  /// Memory that lives as long as the operation runs, forward and backward.
  std::vector<TensorId> forward_buffers;
  std::vector<TensorId> backward_buffers;
  Repeat repeat = Repeat::kNever;
  /// Inputs without a gradient.
  std::vector<TensorId> looks_at = {};
  /// Whether what it keeps is for the gradient of a weight, which can be put off.
  bool has_weight = false;
  /// Backward's memory that is for the weight's gradient alone; and what the output's gradient is gathered
  /// into, which that gradient needs in its place.
  std::vector<TensorId> weight_buffers = {};
  std::vector<TensorId> gathered_gradient = {};
};

/// One allocation or free. A name says which tensor of the tape it is, and whether the tensor itself or a
/// gradient of it.
struct MemoryChange {
  std::size_t name = 0;
  Bytes bytes = 0;
  program::MemoryCategory category = program::MemoryCategory::kTemporary;
  bool allocates = true;
};
using MemoryTrace = std::vector<MemoryChange>;

/// What a forward pass keeps.
enum class Keep : std::uint8_t {
  /// All that backward needs.
  kAll,
  /// What a checkpoint keeps: the pass's input, and the outputs that it saves.
  kInput,
  /// Nothing: the pass lies between two kept inputs.
  kNothing,
};

/// How a checkpoint brings back what it has not kept.
enum class Checkpoint : std::uint8_t {
  /// The whole forward runs again.
  kWhole,
  /// What is left of the forward behind saved outputs runs again, up to the last tensor that backward needs
  /// (PyTorch's selective checkpoint, with early stop). Saved outputs stay until they are used, and those
  /// that
  /// nothing uses until backward has ended.
  kSelective,
  /// The same in a compiled pass, which saves only what is used.
  kCompiled,
};

/// The tensors of one pass (a layer, the embedding or the head) with their lifetimes, as PyTorch's autograd
/// and caching allocator would have them: an output lives until its last reader is done or, if an operation
/// keeps it, until the backward of the last one that does; a gradient lives from the backward of the first
/// reader to that of the writer. Neighbouring passes hand their tensors over: a pass owns its input, frees
/// its output at its end, and the same for gradients the other way round.
class Tape {
 public:
  /// A tensor of `bytes` >= 0; `category` is what it counts as while it lives, unless it is kept.
  TensorId tensor(std::string name, Bytes bytes,
                  program::MemoryCategory category = program::MemoryCategory::kTemporary);
  /// A view of another tensor: only its gradient, of `bytes`, takes memory.
  TensorId view(std::string name, Bytes bytes);
  /// As `tensor`, for one that counts as `kept` also while it is kept (logits).
  TensorId kept_as(std::string name, Bytes bytes, program::MemoryCategory kept);
  /// Logits whose gradient is written in their place.
  TensorId overwritten_by_gradient(std::string name, Bytes bytes);
  /// Lets a checkpoint that is not kWhole keep an output, instead of making it again.
  void save(TensorId tensor) { saved_.push_back(tensor); }
  void set_checkpoint(Checkpoint checkpoint) { checkpoint_ = checkpoint; }
  void add(Operation operation) { operations_.push_back(std::move(operation)); }
  /// What comes in from the pass before and what goes out; without them the pass is the first or the last.
  void set_input(TensorId tensor) { input_ = tensor; }
  void set_output(TensorId tensor) { output_ = tensor; }

  /// Forward of a pass that keeps `keep`.
  MemoryTrace forward(Keep keep = Keep::kAll) const;
  /// Forward run again before backward; its input is there already if it was kept.
  MemoryTrace again(bool input_kept) const;
  /// Backward after a forward that kept all.
  MemoryTrace backward() const;
  /// The same in two parts: gradients of inputs, and later those of weights, until which their inputs and the
  /// gradients of their outputs stay.
  std::array<MemoryTrace, 2> split_backward() const;

  /// Bytes that are kept from forward to backward.
  Bytes kept(Keep keep = Keep::kAll) const;
  bool has_input() const { return input_ != kNoTensor; }
  /// Bytes of the input.
  Bytes input_bytes() const { return input_ == kNoTensor ? 0 : tensors_[input_].bytes; }
  /// Names that traces use are below this; and the text of one.
  std::size_t names() const { return kParts * tensors_.size(); }
  std::string text(std::size_t name) const;

 private:
  /// A tensor itself, its gradient, and a gradient on its way to be added to that.
  enum Part : std::uint8_t { kValue, kGradient, kTerm };
  static constexpr std::size_t kParts = 3;
  struct Tensor {
    std::string name;
    Bytes bytes = 0;
    Bytes gradient_bytes = 0;
    program::MemoryCategory category = program::MemoryCategory::kTemporary;
    program::MemoryCategory kept = program::MemoryCategory::kActivations;
  };
  class Walk;
  /// End of the operations that a checkpoint runs again.
  std::size_t repeated_operations() const;
  /// Whether one of these reads a tensor, or backward needs it.
  bool is_used_again(TensorId tensor) const;
  /// Saved tensors that a checkpoint holds, and those of them that nothing uses.
  std::vector<TensorId> held() const;
  std::vector<TensorId> held_in_vain() const;

  std::vector<TensorId> saved_;
  Checkpoint checkpoint_ = Checkpoint::kWhole;
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;
  TensorId input_ = kNoTensor;
  TensorId output_ = kNoTensor;
};

/// All traces of a tape that a program may need.
struct TapeTraces {
  /// `split` says whether backward comes in two parts.
  explicit TapeTraces(const Tape& tape, bool split = false);

  MemoryTrace forward;
  MemoryTrace forward_keeping_input;
  MemoryTrace forward_keeping_nothing;
  MemoryTrace again;
  MemoryTrace again_after_kept_input;
  MemoryTrace backward;
  /// Allocations that are left of a forward that keeps all, and of one that keeps its input.
  MemoryTrace kept;
  MemoryTrace kept_input;
  /// Of a backward in two parts.
  MemoryTrace input_gradients;
  MemoryTrace weight_gradients;
  /// Texts by name.
  std::vector<std::string> texts;
};

}  // namespace trainsim::lowering
