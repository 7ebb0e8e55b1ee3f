// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/memory/ledger.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// "forward of micro-batch 3, chunk 1", or "outside the pipeline slots" for slot -1.
std::string slot_name(const program::Program& program, std::int32_t slot);

/// Stretches of memory with the times at which a rank went through them, one per point of the profile's
/// curve. They follow each other without gaps.
std::vector<MemorySpan> memory_curve(const program::Program& program, const memory::Profile& profile,
                                     const program::RankTimeline& timeline);

}  // namespace trainsim::report
