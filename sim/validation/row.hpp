// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/value.hpp"

namespace trainsim::validation {

/// Measured forward and backward time of one layer and micro-batch.
struct LayerTime {
  Seconds forward = 0;
  Seconds backward = 0;
};

/// What of a GPU's memory a measurement counts.
enum class MemoryKind : std::uint8_t {
  /// Tensors: torch.cuda.max_memory_allocated.
  kAllocated,
  /// What the caching allocator holds: torch.cuda.max_memory_reserved.
  kReserved,
  /// What the device has handed out, contexts and libraries included: nvidia-smi.
  kDevice,
};
/// "allocated memory", "reserved memory", "device memory".
const char* to_string(MemoryKind kind);

/// Measured memory of the fullest rank, or of the first.
struct MeasuredMemory {
  MemoryKind kind = MemoryKind::kAllocated;
  Bytes bytes = 0;
};

/// One measured run as a file describes it (docs/validation.md), translated into the configuration language.
struct Row {
  std::string id;
  /// The file's name without extension.
  std::string family;
  /// "A" (complete configuration and measurement), "B" (something inferred) or "C" (secondary source).
  std::string tier;
  std::string source;
  config::Position at;
  /// The run as a configuration; to be resolved. Meaningless when the row is skipped.
  config::Value config;
  /// What was measured; a row has at least one of the two unless it is skipped.
  std::optional<Seconds> step_time;
  std::optional<LayerTime> layer_time;
  std::vector<MeasuredMemory> memory;
  /// Whether that is of rank 0, which many frameworks log, instead of the fullest.
  bool memory_of_first = false;
  /// Whether it ran out of memory (true) or ran (false); nothing when the row says neither.
  std::optional<bool> out_of_memory;
  /// Sentences: what the source leaves open, and what is taken instead.
  std::vector<std::string> assumptions;
  /// Whether something that the result depends on is not stated.
  bool incomplete = false;
  /// The constant that this row was used to fit; empty for a row that only tests.
  std::string fitted;
  /// Rows with the same text differ in the plan only, so their order can be compared; empty = in no group.
  std::string group;
  /// Sequences of a step, to compare rows of one group.
  double sequences = 1;
  /// Why the row is not simulated; empty when it is.
  std::string skipped;
};

/// All rows of a folder.
struct RowSet {
  std::vector<Row> rows;
  /// Malformed rows and unreadable files: "file:line:col: error: …" with the source line, one text each.
  std::vector<std::string> problems;
  /// Rows and files behind `problems`, by family.
  std::vector<std::string> malformed_families;
};

}  // namespace trainsim::validation
