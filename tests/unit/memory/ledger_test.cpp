// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/ledger.hpp"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "sim/memory/reservation.hpp"

namespace trainsim::memory {
namespace {

using program::Instruction;
using program::MemoryCategory;
using program::Opcode;
using program::Program;
using program::Stream;

/// A program of state (100), two micro-batches whose forward allocates 10 and backward frees it, with a
/// buffer of 5 in the middle of each backward.
class Step {
 public:
  Step() {
    program_.tensors = {"state", "activation", "buffer"};
    memory(Opcode::kAllocate, 0, 100, MemoryCategory::kParameters);
    for (const std::int32_t micro_batch : {0, 1}) {
      begin('F', micro_batch);
      memory(Opcode::kAllocate, 1, 10, MemoryCategory::kActivations);
      compute(1);
      end();
    }
    for (const std::int32_t micro_batch : {0, 1}) {
      begin('B', micro_batch);
      compute(3);
      memory(Opcode::kAllocate, 2, 5, MemoryCategory::kTemporary);
      compute(1);
      memory(Opcode::kFree, 2, 5, MemoryCategory::kTemporary);
      memory(Opcode::kFree, 1, 10, MemoryCategory::kTemporary);
      end();
    }
  }
  void memory(Opcode op, std::uint32_t tensor, double bytes, MemoryCategory category) {
    Instruction instruction;
    instruction.op = op;
    instruction.id = tensor;
    instruction.amount = bytes;
    instruction.memory = category;
    push(instruction);
  }
  Program& program() { return program_; }

 private:
  void push(const Instruction& instruction) { program_.stream(Stream::kCompute).push_back(instruction); }
  void begin(char kind, std::int32_t micro_batch) {
    Instruction instruction;
    instruction.op = Opcode::kSlotBegin;
    instruction.id = static_cast<std::uint32_t>(program_.slots.size());
    program_.slots.push_back({kind, micro_batch, 0});
    push(instruction);
  }
  void end() {
    Instruction instruction;
    instruction.op = Opcode::kSlotEnd;
    push(instruction);
  }
  void compute(double seconds) {
    Instruction instruction;
    instruction.op = Opcode::kCompute;
    instruction.amount = seconds;
    push(instruction);
  }

  Program program_;
};

TEST(Ledger, FindsThePeakAndWhereItIs) {
  Step step;
  const Profile profile = replay(step.program());
  EXPECT_EQ(profile.peak, 125);
  EXPECT_EQ(profile.peak_slot, 2);
  EXPECT_DOUBLE_EQ(profile.peak_share, 0.75);
  EXPECT_EQ(profile.at_peak[static_cast<std::size_t>(MemoryCategory::kActivations)], 20);
  EXPECT_EQ(profile.at_end[static_cast<std::size_t>(MemoryCategory::kParameters)], 100);
  EXPECT_EQ(profile.at_end[static_cast<std::size_t>(MemoryCategory::kActivations)], 0);
}

TEST(Ledger, ListsWhatIsAliveLargestFirst) {
  Step step;
  const std::vector<LiveTensor> alive = replay(step.program()).alive_at_peak;
  ASSERT_EQ(alive.size(), 4U);
  EXPECT_EQ(alive[0].name, "state");
  EXPECT_EQ(alive[0].micro_batch, -1);
  EXPECT_EQ(alive[1].name, "activation");
  EXPECT_EQ(alive[1].micro_batch, 0);
  EXPECT_EQ(alive[2].micro_batch, 1);
  EXPECT_EQ(alive[3].name, "buffer");
}

TEST(Ledger, DrawsACurveWithOnePointPerSlot) {
  Step step;
  const std::vector<MemoryPoint> curve = replay(step.program()).curve;
  ASSERT_EQ(curve.size(), 6U);
  EXPECT_EQ(curve[0].end, 100);
  EXPECT_EQ(curve[2].begin, 110);
  EXPECT_EQ(curve[2].end, 120);
  EXPECT_EQ(curve[3].peak, 125);
  EXPECT_EQ(curve[4].end, 100);
}

TEST(Ledger, RefusesToFreeWhatIsNotThere) {
  Step step;
  step.memory(Opcode::kFree, 1, 10, MemoryCategory::kActivations);
  EXPECT_THROW(replay(step.program()), std::logic_error);
}

/// Outside of slots there is no micro-batch; what a slot has allocated is found there only if it lasts.
TEST(Ledger, FreesWhatOutlivesItsMicroBatch) {
  Step step;
  Program& program = step.program();
  std::vector<Instruction>& stream = program.stream(Stream::kCompute);
  // The last slot's end comes after what is freed there.
  const Instruction end = stream.back();
  stream.pop_back();
  step.memory(Opcode::kAllocate, 2, 7, MemoryCategory::kGradients);
  stream.push_back(end);
  step.memory(Opcode::kFree, 2, 7, MemoryCategory::kGradients);
  EXPECT_THROW(replay(program), std::logic_error);
  program.lasting_tensors = {2};
  EXPECT_EQ(replay(program).at_end[static_cast<std::size_t>(MemoryCategory::kGradients)], 0);
}

TEST(Reservation, MakesRoomForStateThatAppearsLate) {
  // Blocks of 512 bytes: the late state is allocated after the first step, beside what that has cached.
  Step step;
  step.program().late_tensors = {0};
  const Reservation held = reserve(step.program(), Segments::kFixed);
  EXPECT_EQ(held.peak_allocated, 4 * 512);
  EXPECT_EQ(held.peak_reserved, 2 * 1024 * 1024);
}

/// Parameters of 30 MiB, a master parameter of 24 and an activation of 20, in segments of their own.
Program megatron_like() {
  constexpr double mib = 1024 * 1024;
  Step step;
  Program program = step.program();
  for (Instruction& instruction : program.stream(Stream::kCompute)) {
    if (instruction.op != Opcode::kAllocate && instruction.op != Opcode::kFree) continue;
    instruction.amount = instruction.id == 0 ? 30 * mib : instruction.id == 1 ? 20 * mib : 5;
  }
  program.tensors.emplace_back("master");
  std::vector<Instruction>& stream = program.stream(Stream::kCompute);
  Instruction master = stream.front();
  master.id = 3;
  master.amount = 24 * mib;
  master.memory = MemoryCategory::kOptimizerState;
  stream.insert(stream.begin() + 1, master);
  return program;
}

/// The weights' first segment (30) stays when they were copied to that of parameters (30). It lends room to
/// the copy of 12 that the master (24, a segment of its own) is made of, and to one activation; the other, in
/// flight at the same time, needs one more (20). Blocks of 5 bytes are in one of 2.
TEST(Reservation, KeepsWhatTheFirstWeightsHaveCut) {
  constexpr Bytes mib = 1024 * 1024;
  Program program = megatron_like();
  EXPECT_EQ(reserve(program, Segments::kFixed).peak_reserved, (30 + 24 + 20 + 20 + 2) * mib);
  program.initial_weights = {30 * mib};
  EXPECT_EQ(reserve(program, Segments::kFixed).peak_reserved, (30 + 30 + 24 + 20 + 2) * mib);
}

/// Masters that fit where the first weights were cut leave pieces: 24 of 30, after the copy of 12.
TEST(Reservation, MakesMastersWhereTheFirstWeightsWere) {
  constexpr Bytes mib = 1024 * 1024;
  Program program = megatron_like();
  program.initial_weights = {30 * mib, 12 * mib};
  // The copy takes the segment of 12, the master 24 of that of 30; both activations need their own.
  EXPECT_EQ(reserve(program, Segments::kFixed).peak_reserved, (30 + 12 + 30 + 20 + 20 + 2) * mib);
}

}  // namespace
}  // namespace trainsim::memory
