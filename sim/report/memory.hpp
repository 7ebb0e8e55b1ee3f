// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/summary.hpp"

namespace trainsim::report {

/// The answer to "how much of this fits?".
struct FleetAnswer {
  /// "largest micro_batch_size", "largest sequence_length", "fewest gpus".
  std::string question;
  /// The number, and what comes with it ("TP8 PP2 DP1"); 0 and why when there is none.
  std::int64_t value = 0;
  std::string note;
};

/// What `trainsim memory` shows of a run.
struct MemoryReport {
  Summary summary;
  /// Index into Summary::ranks of the simulated rank, and the rank that it stands for here.
  std::size_t rank = 0;
  std::int64_t rank_id = 0;
  /// What `recompute: auto` chose; empty without it.
  std::string chosen;
  std::vector<FleetAnswer> answers;
};

/// Peak, categories, tensors and curve of one rank, all stages beside it, and changes that would help.
std::string to_text(const MemoryReport& report);
/// The same with the whole curve, as JSON that ends in a newline (docs/output.md).
std::string to_json(const MemoryReport& report);

/// Tensors that differ in layer and micro-batch only.
struct TensorKind {
  std::string name;
  program::MemoryCategory category = program::MemoryCategory::kTemporary;
  std::int64_t count = 0;
  Bytes bytes = 0;
};
/// Tensors by kind, those that take most first.
std::vector<TensorKind> kinds_of(const std::vector<memory::LiveTensor>& tensors);

/// The highest memory in each of `columns` equal parts of a step.
std::vector<Bytes> columns_of(const StageMemory& memory, Seconds step, std::size_t columns);

/// "plan.recompute=full: fits, 9.3 GiB left, costs 24 % step time".
std::string change_text(const MemoryChange& change);

/// RankSummary::peak_at in a sentence: "in the forward of micro-batch 3", or "outside the pipeline slots".
std::string peak_words(const std::string& peak_at);

}  // namespace trainsim::report
