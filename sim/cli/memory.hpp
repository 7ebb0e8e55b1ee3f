// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/experiment.hpp"
#include "sim/engine/executor.hpp"
#include "sim/report/memory.hpp"

namespace trainsim::cli {

/// What `trainsim memory` was asked for.
struct MemoryRequest {
  std::string subject;
  std::vector<std::string> overrides;
  /// Global rank to show; nothing = the fullest.
  std::optional<std::int64_t> rank;
  /// "micro_batch_size" or "sequence_length": look for the largest that fits; empty = don't.
  std::string largest;
  /// Look for the fewest GPUs that the model fits on.
  bool fewest_gpus = false;
};

/// Simulates a configuration and looks at its memory. Throws InputError.
report::MemoryReport describe_memory(const MemoryRequest& request, const engine::Progress& progress);

/// Changes of a plan that make it fit, cheapest first, of up to three settings if fewer are not enough; if
/// none does, those that come nearest. At most `most`. Each is lowered anew; its time comes from the ideal
/// executor.
std::vector<report::MemoryChange> memory_changes(const std::string& subject,
                                                 const std::vector<std::string>& overrides,
                                                 const config::Experiment& experiment, std::size_t most);

}  // namespace trainsim::cli
