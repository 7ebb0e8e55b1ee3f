// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/cost/kernel_model.hpp"
#include "sim/lowering/pass.hpp"
#include "sim/program/program.hpp"

namespace trainsim::lowering {

/// A pass whose compute steps are registered as segments of a program, ready to be emitted many times.
struct RegisteredPass {
  struct Item {
    StepKind kind = StepKind::kCompute;
    program::Cause cause = program::Cause::kForward;
    program::CollectiveOp op = program::CollectiveOp::kAllReduce;
    program::GroupKind group = program::GroupKind::kTensor;
    std::uint32_t segment = 0;
    double amount = 0;
  };
  std::vector<Item> items;
};

/// Appends instructions to a program.
class Emitter {
 public:
  Emitter(program::Program& program, const cost::KernelModel& kernels)
      : program_(program), kernels_(kernels) {}

  /// Registers the pass's compute steps as segments.
  RegisteredPass register_pass(const Pass& pass);
  /// Emits a registered pass on the compute stream; overlapped collectives go to the stream of their
  /// group.
  void emit(const RegisteredPass& pass);

  void allocate(program::MemoryCategory category, std::uint32_t tensor, Bytes bytes);
  void free(program::MemoryCategory category, std::uint32_t tensor, Bytes bytes);
  /// Number of a tensor name, for allocate and free.
  std::uint32_t tensor(const std::string& name);
  /// Weights that are there before all others, and gone before the first step.
  void make_first(std::vector<Bytes> weights) { program_.initial_weights = std::move(weights); }
  /// The tensor first appears in the first step.
  void mark_late(std::uint32_t tensor) { program_.late_tensors.push_back(tensor); }
  /// The tensor belongs to the step, not to the micro-batch in whose slot it appears.
  void mark_lasting(std::uint32_t tensor) { program_.lasting_tensors.push_back(tensor); }
  /// PyTorch allocates the tensor on another stream than that of compute.
  void mark_side(std::uint32_t tensor) { program_.side_tensors.push_back(tensor); }
  void collective(program::Stream stream, program::GroupKind group, program::CollectiveOp op, double bytes,
                  program::Cause cause);
  void send(program::Stream stream, program::PeerKind peer, std::uint32_t message, double bytes);
  void receive(std::uint32_t message);
  /// Marks a new event on a stream; the number is for `wait`.
  std::uint32_t record(program::Stream stream);
  void wait(program::Stream stream, std::uint32_t event, program::Cause cause);
  /// Registers work of known length that no kernel of the compute stream does, such as a copy.
  std::uint32_t register_work(const std::string& name, Seconds seconds);
  /// Runs registered work on a stream.
  void run(program::Stream stream, std::uint32_t work, program::Cause cause);
  /// The host waits for the compute stream here, and then works for as long as `launches` kernels take to
  /// launch.
  void synchronize(int launches);
  void begin_slot(char kind, std::int32_t micro_batch, std::int32_t chunk);
  void end_slot();
  /// What follows belongs to the slot that begins next, its arrivals included, until leave_slot().
  void enter_slot();
  void leave_slot();
  /// What follows belongs to a layer of the model; kNoLayer = to none.
  void enter_layer(std::int64_t layer) { layer_ = static_cast<std::int32_t>(layer); }
  static constexpr std::int64_t kNoLayer = -1;
  std::int64_t layer() const { return layer_; }

 private:
  void push(program::Stream stream, const program::Instruction& instruction);
  void memory(program::Opcode op, program::MemoryCategory category, std::uint32_t tensor, Bytes bytes);

  program::Program& program_;
  const cost::KernelModel& kernels_;
  /// By group: when the overlapped collective that was started last ends.
  std::array<std::uint32_t, program::kGroupKinds> pending_events_{};
  /// Where the program is: index of the slot and number of the layer, or -1.
  std::int32_t slot_ = -1;
  std::int32_t layer_ = -1;
  std::unordered_map<std::string, std::uint32_t> tensors_;
};

}  // namespace trainsim::lowering
