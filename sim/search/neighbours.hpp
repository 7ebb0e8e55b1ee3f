// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/search/candidate.hpp"

namespace trainsim::search {

/// A legal plan that one step leads to from a configuration's own.
struct Neighbour {
  /// What moved: "tensor_parallel 8 -> 4, data_parallel 16 -> 32".
  std::string change;
  /// Overrides of the configuration, as for --set.
  std::vector<std::string> overrides;
};

struct Neighbourhood {
  std::vector<Neighbour> legal;
  /// Steps that lead to no legal plan.
  std::int64_t illegal = 0;
};

/// Plans that differ from the configuration's in one setting, moved to its next legal value up and down, and
/// in what has to follow it:
///
/// - tensor_parallel, with data_parallel or pipeline_parallel in balance;
/// - context_parallel, if it is more than 1, with data_parallel in balance;
/// - pipeline_parallel, with data_parallel in balance, and as many chunks as can stay;
/// - virtual_pipeline, and the schedule that goes with it; schedule (1f1b, gpipe);
/// - micro_batch_size, with as large a batch;
/// - recompute: none, selective, core_attn+layernorm+activation, core_attn+mlp, full, or one layer more or
/// less
///   of block recomputation;
/// - sharding: none, zero1, zero2, zero3;
/// - sequence_parallel and the switches for overlap, where they mean something.
Neighbourhood neighbours_of(const Base& base);

}  // namespace trainsim::search
