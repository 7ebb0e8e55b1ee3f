// SPDX-License-Identifier: Apache-2.0
#include "sim/program/span.hpp"

#include "sim/program/job.hpp"

namespace trainsim::program {

namespace {

/// What an idle stream waits for.
const char* wait_name(const Span& span) {
  switch (span.cause) {
    case Cause::kBubble:
      return "bubble";
    case Cause::kLaunch:
      return "wait for kernel launch";
    case Cause::kImbalance:
      return span.instruction == Span::kStepEnd ? "wait for the end of the step" : "wait for slower ranks";
    case Cause::kTensorCommunication:
      return "wait for the tensor stream";
    case Cause::kPipelineCommunication:
      return "wait for the send stream";
    case Cause::kDataCommunication:
      return "wait for the data stream";
    case Cause::kContextCommunication:
      return "wait for the context stream";
    default:
      return "wait";
  }
}

void add_collective(const Job& job, const Rank& rank, const Instruction& instruction, SpanDetails& details) {
  details.bytes = instruction.amount;
  const std::int32_t group = rank.groups[static_cast<std::size_t>(instruction.group)];
  if (group >= 0) details.group = &job.groups[static_cast<std::size_t>(group)];
}

std::string name_of(const Program& program, const Instruction& instruction, const Span& span) {
  switch (span.kind) {
    case SpanKind::kKernels:
      return program.segments[instruction.id].name;
    case SpanKind::kCollective:
      return std::string("nccl:") + to_string(instruction.collective);
    case SpanKind::kSend:
      return "nccl:send";
    case SpanKind::kReceive:
      return "nccl:recv";
    case SpanKind::kWait:
      break;
  }
  return wait_name(span);
}

}  // namespace

SpanDetails describe(const Job& job, std::size_t rank, Stream stream, const Span& span) {
  SpanDetails details;
  if (span.instruction == Span::kStepEnd) {
    details.name = wait_name(span);
    return details;
  }
  const Rank& who = job.ranks[rank];
  const Program& program = job.programs[who.program];
  const Instruction& instruction = program.stream(stream)[span.instruction];
  const Place place = program.place_of(stream, span.instruction);
  details.name = name_of(program, instruction, span);
  details.slot = place.slot;
  details.layer = place.layer;
  switch (instruction.op) {
    case Opcode::kCollective:
      add_collective(job, who, instruction, details);
      break;
    case Opcode::kSend:
      details.bytes = instruction.amount;
      details.receiver = who.peers[static_cast<std::size_t>(instruction.peer)].rank;
      details.message = instruction.id;
      break;
    case Opcode::kReceive:
      details.message = instruction.id;
      break;
    default:
      break;
  }
  return details;
}

}  // namespace trainsim::program
