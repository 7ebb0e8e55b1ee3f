// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/job_view.hpp"

namespace trainsim::engine {

std::size_t count_instructions(const program::Job& job) {
  std::size_t count = 0;
  for (const program::Rank& rank : job.ranks) {
    for (const auto& stream : job.programs[rank.program].streams) count += stream.size();
  }
  return count;
}

std::string describe_wait(const program::Job& job, std::size_t rank, program::Stream stream,
                          const program::Instruction& instruction) {
  const program::Rank& who = job.ranks[rank];
  std::string text = "rank " + std::to_string(who.id) + " (stage " + std::to_string(who.stage) + "), " +
                     to_string(stream) + " stream: waits for ";
  switch (instruction.op) {
    case program::Opcode::kReceive:
      return text + "message " + std::to_string(instruction.id);
    case program::Opcode::kWait:
      return text + "event " + std::to_string(instruction.id);
    case program::Opcode::kCollective:
      return text + "the other members of its " + to_string(instruction.group) + " group";
    default:
      return text + "a transfer to end";
  }
}

}  // namespace trainsim::engine
