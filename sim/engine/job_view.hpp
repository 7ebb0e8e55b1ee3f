// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "sim/program/job.hpp"

namespace trainsim::engine {

/// Number of instructions of all ranks.
std::size_t count_instructions(const program::Job& job);
/// "rank 12 (stage 1), compute stream: waits for message 3 …", for deadlock reports.
std::string describe_wait(const program::Job& job, std::size_t rank, program::Stream stream,
                          const program::Instruction& instruction);

}  // namespace trainsim::engine
