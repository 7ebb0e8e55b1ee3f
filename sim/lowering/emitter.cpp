// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/emitter.hpp"

#include <utility>

namespace trainsim::lowering {

using program::Cause;
using program::GroupKind;
using program::Instruction;
using program::Opcode;
using program::Stream;

RegisteredPass Emitter::register_pass(const Pass& pass) {
  RegisteredPass registered;
  // A host that waits for each kernel waits for each collective, too, before it launches what follows.
  Seconds launching = 0;
  for (const Step& step : pass) {
    RegisteredPass::Item item{step.kind, step.cause, step.group, step.op, 0, step.bytes};
    if (step.kind == StepKind::kCompute) {
      item.segment = static_cast<std::uint32_t>(program_.segments.size());
      program_.segments.push_back(kernels_.segment(step.name, step.kernels));
      program_.segments.back().launch_seconds += std::exchange(launching, 0.0);
      item.amount = program_.segments.back().seconds;
    } else if (step.kind != StepKind::kJoin && kernels_.blocking_launches()) {
      launching += kernels_.launch_interval();
    }
    registered.items.push_back(item);
  }
  return registered;
}

void Emitter::emit(const RegisteredPass& pass) {
  for (const RegisteredPass::Item& item : pass.items) {
    switch (item.kind) {
      case StepKind::kCompute: {
        Instruction compute;
        compute.op = Opcode::kCompute;
        compute.cause = item.cause;
        compute.id = item.segment;
        compute.amount = item.amount;
        push(Stream::kCompute, compute);
        const Flops flops = program_.segments[item.segment].flops;
        program_.flops += flops;
        if (item.cause == Cause::kRecompute) program_.recomputed_flops += flops;
        break;
      }
      case StepKind::kCollective:
        collective(Stream::kCompute, item.group, item.op, item.amount, item.cause);
        break;
      case StepKind::kStartCollective: {
        const Stream stream = item.group == GroupKind::kContext ? Stream::kContext : Stream::kTensor;
        const std::uint32_t ready = record(Stream::kCompute);
        wait(stream, ready, item.cause);
        collective(stream, item.group, item.op, item.amount, item.cause);
        pending_events_[static_cast<std::size_t>(item.group)] = record(stream);
        break;
      }
      case StepKind::kJoin:
        wait(Stream::kCompute, pending_events_[static_cast<std::size_t>(item.group)], item.cause);
        break;
    }
  }
}

std::uint32_t Emitter::register_work(const std::string& name, Seconds seconds) {
  program::Segment segment;
  segment.name = name;
  segment.seconds = seconds;
  program_.segments.push_back(std::move(segment));
  return static_cast<std::uint32_t>(program_.segments.size() - 1);
}

void Emitter::run(Stream stream, std::uint32_t work, Cause cause) {
  Instruction instruction;
  instruction.op = Opcode::kCompute;
  instruction.cause = cause;
  instruction.id = work;
  instruction.amount = program_.segments[work].seconds;
  push(stream, instruction);
}

void Emitter::push(Stream stream, const Instruction& instruction) {
  std::vector<Instruction>& code = program_.stream(stream);
  std::vector<program::Place>& places = program_.places[static_cast<std::size_t>(stream)];
  const bool known =
      places.empty() ? slot_ < 0 && layer_ < 0 : places.back().slot == slot_ && places.back().layer == layer_;
  if (!known) places.push_back({static_cast<std::uint32_t>(code.size()), slot_, layer_});
  code.push_back(instruction);
}

void Emitter::memory(Opcode op, program::MemoryCategory category, std::uint32_t tensor, Bytes bytes) {
  if (bytes == 0) return;
  Instruction instruction;
  instruction.op = op;
  instruction.memory = category;
  instruction.id = tensor;
  instruction.amount = static_cast<double>(bytes);
  push(Stream::kCompute, instruction);
}

void Emitter::allocate(program::MemoryCategory category, std::uint32_t tensor, Bytes bytes) {
  memory(Opcode::kAllocate, category, tensor, bytes);
}

void Emitter::free(program::MemoryCategory category, std::uint32_t tensor, Bytes bytes) {
  memory(Opcode::kFree, category, tensor, bytes);
}

std::uint32_t Emitter::tensor(const std::string& name) {
  const auto [found, added] = tensors_.try_emplace(name, static_cast<std::uint32_t>(program_.tensors.size()));
  if (added) program_.tensors.push_back(name);
  return found->second;
}

void Emitter::collective(Stream stream, GroupKind group, program::CollectiveOp op, double bytes,
                         Cause cause) {
  Instruction instruction;
  instruction.op = Opcode::kCollective;
  instruction.cause = cause;
  instruction.group = group;
  instruction.collective = op;
  instruction.amount = bytes;
  push(stream, instruction);
}

void Emitter::send(Stream stream, program::PeerKind peer, std::uint32_t message, double bytes) {
  Instruction instruction;
  instruction.op = Opcode::kSend;
  instruction.cause = Cause::kPipelineCommunication;
  instruction.peer = peer;
  instruction.id = message;
  instruction.amount = bytes;
  push(stream, instruction);
}

void Emitter::receive(std::uint32_t message) {
  Instruction instruction;
  instruction.op = Opcode::kReceive;
  instruction.cause = Cause::kPipelineCommunication;
  instruction.id = message;
  push(Stream::kCompute, instruction);
}

std::uint32_t Emitter::record(Stream stream) {
  Instruction instruction;
  instruction.op = Opcode::kRecord;
  instruction.id = program_.events++;
  push(stream, instruction);
  return instruction.id;
}

void Emitter::wait(Stream stream, std::uint32_t event, Cause cause) {
  Instruction instruction;
  instruction.op = Opcode::kWait;
  instruction.cause = cause;
  instruction.id = event;
  push(stream, instruction);
}

void Emitter::synchronize(int launches) {
  Instruction instruction;
  instruction.op = Opcode::kSynchronize;
  instruction.amount = static_cast<double>(launches) * kernels_.launch_interval();
  push(Stream::kCompute, instruction);
}

void Emitter::begin_slot(char kind, std::int32_t micro_batch, std::int32_t chunk) {
  Instruction instruction;
  instruction.op = Opcode::kSlotBegin;
  instruction.id = static_cast<std::uint32_t>(program_.slots.size());
  program_.slots.push_back({kind, micro_batch, chunk});
  push(Stream::kCompute, instruction);
}

void Emitter::enter_slot() {
  slot_ = static_cast<std::int32_t>(program_.slots.size());
  layer_ = -1;
}

void Emitter::leave_slot() {
  slot_ = layer_ = -1;
}

void Emitter::end_slot() {
  Instruction instruction;
  instruction.op = Opcode::kSlotEnd;
  instruction.id = static_cast<std::uint32_t>(program_.slots.size() - 1);
  push(Stream::kCompute, instruction);
}

}  // namespace trainsim::lowering
