// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/reservation.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "sim/memory/live_set.hpp"

namespace trainsim::memory {

using program::Instruction;
using program::MemoryCategory;
using program::Opcode;
using program::Program;
using program::Stream;

namespace {

/// Micro-batches that are replayed at either end of a step beside those in flight.
constexpr std::int32_t kMoreMicroBatches = 2;

/// Most micro-batches whose forward is done and backward, or that of weights, is not.
std::int32_t most_in_flight(const Program& program) {
  const bool split = std::any_of(program.slots.begin(), program.slots.end(),
                                 [](const program::SlotInfo& slot) { return slot.kind == 'W'; });
  const char last = split ? 'W' : 'B';
  std::int32_t now = 0;
  std::int32_t most = 1;
  for (const program::SlotInfo& slot : program.slots) {
    if (slot.chunk != 0) continue;
    now += slot.kind == 'F' ? 1 : slot.kind == last ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

/// Whether all micro-batches allocate the same amount, so that a few of them stand for all.
bool all_alike(const Program& program) {
  std::vector<double> allocated;
  std::int32_t micro_batch = -1;
  for (const Instruction& instruction : program.stream(Stream::kCompute)) {
    if (instruction.op == Opcode::kSlotBegin) {
      micro_batch = program.slots[instruction.id].micro_batch;
      allocated.resize(std::max(allocated.size(), static_cast<std::size_t>(micro_batch) + 1));
    } else if (instruction.op == Opcode::kSlotEnd) {
      micro_batch = -1;
    } else if (instruction.op == Opcode::kAllocate && micro_batch >= 0) {
      allocated[static_cast<std::size_t>(micro_batch)] += instruction.amount;
    }
  }
  return std::adjacent_find(allocated.begin(), allocated.end(), std::not_equal_to<>()) == allocated.end();
}

/// Runs the memory of one program through an allocator.
class Replay {
 public:
  Replay(const Program& program, CachingAllocator& allocator)
      : program_(program),
        allocator_(allocator),
        live_(program),
        late_(program.tensors.size(), false),
        side_(late_) {
    for (const std::uint32_t tensor : program.late_tensors) late_[tensor] = true;
    for (const std::uint32_t tensor : program.side_tensors) side_[tensor] = true;
    const std::int32_t ends = most_in_flight(program) + kMoreMicroBatches;
    std::int32_t last = 0;
    for (const program::SlotInfo& slot : program.slots) last = std::max(last, slot.micro_batch);
    skip_from_ = ends;
    skip_to_ = all_alike(program) ? last + 1 - ends : 0;
  }

  /// Weights as they are first made; they are copied when there is room for parameters and gradients.
  void allocate_initial_weights() {
    for (const Bytes bytes : program_.initial_weights)
      initial_.push_back(allocator_.allocate(bytes, Pool::kMain));
  }

  /// One step; `state` is allocated before its first slot, and only if `with_state`.
  void step(bool with_state) {
    bool skipped = false;
    bool begun = false;
    for (const Instruction& instruction : program_.stream(Stream::kCompute)) {
      if (instruction.op == Opcode::kSlotBegin) {
        begun = true;
        free_initial_weights();
        const std::int32_t micro_batch = program_.slots[instruction.id].micro_batch;
        skipped = micro_batch >= skip_from_ && micro_batch < skip_to_;
      }
      const bool memory = instruction.op == Opcode::kAllocate || instruction.op == Opcode::kFree;
      // State stays from the first step on.
      const bool again = !begun && !with_state;
      if (memory && (skipped || again || is_late(instruction.id))) continue;
      if (!begun && memory && instruction.memory == MemoryCategory::kOptimizerState) {
        make_master(instruction);
      } else {
        follow(instruction);
      }
      if (instruction.op == Opcode::kSlotEnd) skipped = false;
    }
  }

  void allocate_late_state() {
    for (const Instruction& instruction : program_.stream(Stream::kCompute)) {
      if (instruction.op == Opcode::kSlotBegin) return;
      if (instruction.op == Opcode::kAllocate && is_late(instruction.id)) follow(instruction);
    }
  }

 private:
  void free_initial_weights() {
    for (const CachingAllocator::Block block : initial_) allocator_.free(block);
    initial_.clear();
  }
  /// A master parameter is made of a copy in compute precision, which is then dropped
  /// (`distrib_optimizer.py`).
  void make_master(const Instruction& master) {
    free_initial_weights();
    if (program_.initial_weights.empty()) return follow(master);
    const auto copy = allocator_.allocate(static_cast<Bytes>(master.amount / 2), Pool::kMain);
    follow(master);
    allocator_.free(copy);
  }
  bool is_late(std::uint32_t tensor) const { return late_[tensor]; }
  void follow(const Instruction& instruction) {
    live_.follow(
        instruction,
        [&] {
          const Pool pool = side_[instruction.id] ? Pool::kSide : Pool::kMain;
          return allocator_.allocate(static_cast<Bytes>(instruction.amount), pool);
        },
        [&](CachingAllocator::Block block) { allocator_.free(block); });
  }

  const Program& program_;
  CachingAllocator& allocator_;
  LiveSet<CachingAllocator::Block> live_;
  std::vector<bool> late_;
  std::vector<bool> side_;
  std::vector<CachingAllocator::Block> initial_;
  std::int32_t skip_from_ = 0;
  std::int32_t skip_to_ = 0;
};

}  // namespace

Reservation reserve(const Program& program, Segments segments, Bytes capacity) {
  CachingAllocator allocator(segments, capacity);
  Replay replay(program, allocator);
  replay.allocate_initial_weights();
  replay.step(true);
  replay.allocate_late_state();
  const std::int64_t first = allocator.retries();
  replay.step(false);
  return {allocator.peak_allocated(), allocator.peak_reserved(), allocator.retries() - first};
}

}  // namespace trainsim::memory
