// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "sim/program/program.hpp"

namespace trainsim::memory {

/// Follows a compute stream and remembers something about each tensor that is alive. A tensor is known by its
/// name and, unless it outlives it, by the micro-batch in whose slot it was allocated.
template <class Value>
class LiveSet {
 public:
  explicit LiveSet(const program::Program& program)
      : program_(program), live_(program.tensors.size()), lasting_(program.tensors.size(), false) {
    for (const std::uint32_t tensor : program.lasting_tensors) lasting_[tensor] = true;
  }

  /// Takes note of one instruction: `allocated()` gives what to remember, `freed(value)` is told what was.
  template <class Allocated, class Freed>
  void follow(const program::Instruction& instruction, const Allocated& allocated, const Freed& freed) {
    switch (instruction.op) {
      case program::Opcode::kSlotBegin:
        micro_batch_ = program_.slots[instruction.id].micro_batch;
        break;
      case program::Opcode::kSlotEnd:
        micro_batch_ = -1;
        break;
      case program::Opcode::kAllocate: {
        std::vector<Entry>& entries = live_[instruction.id];
        if (find(instruction) != entries.end()) fail("allocated twice: ", instruction);
        entries.push_back({micro_batch_of(instruction), allocated()});
        break;
      }
      case program::Opcode::kFree: {
        std::vector<Entry>& entries = live_[instruction.id];
        const auto found = find(instruction);
        if (found == entries.end()) fail("freed without being there: ", instruction);
        freed(found->value);
        *found = entries.back();
        entries.pop_back();
        break;
      }
      default:
        break;
    }
  }

  /// Calls `visit(micro_batch, value)` for each tensor that is alive.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const std::vector<Entry>& entries : live_) {
      for (const Entry& entry : entries) visit(entry.micro_batch, entry.value);
    }
  }

 private:
  struct Entry {
    std::int32_t micro_batch;
    Value value;
  };
  /// -1 stands for none.
  std::int32_t micro_batch_of(const program::Instruction& instruction) const {
    return lasting_[instruction.id] ? -1 : micro_batch_;
  }
  auto find(const program::Instruction& instruction) {
    std::vector<Entry>& entries = live_[instruction.id];
    return std::find_if(entries.begin(), entries.end(),
                        [micro_batch = micro_batch_of(instruction)](const Entry& entry) {
                          return entry.micro_batch == micro_batch;
                        });
  }
  [[noreturn]] void fail(const char* what, const program::Instruction& instruction) const {
    throw std::logic_error(what + program_.tensors[instruction.id]);
  }

  const program::Program& program_;
  /// By tensor: few micro-batches are in flight at a time.
  std::vector<std::vector<Entry>> live_;
  std::vector<bool> lasting_;
  std::int32_t micro_batch_ = -1;
};

}  // namespace trainsim::memory
