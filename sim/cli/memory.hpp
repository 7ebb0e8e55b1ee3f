// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sim/cli/variant.hpp"
#include "sim/engine/executor.hpp"
#include "sim/report/memory.hpp"

namespace trainsim::cli {

/// What `trainsim memory` was asked for.
struct MemoryRequest {
  Subject subject;
  /// Global rank to show; nothing = the fullest.
  std::optional<std::int64_t> rank;
  /// "micro_batch_size" or "sequence_length": look for the largest that fits; empty = don't.
  std::string largest;
  /// Look for the fewest GPUs that the model fits on.
  bool fewest_gpus = false;
};

/// Simulates a configuration and looks at its memory. Throws InputError.
report::MemoryReport describe_memory(const MemoryRequest& request, const engine::Progress& progress);

}  // namespace trainsim::cli
