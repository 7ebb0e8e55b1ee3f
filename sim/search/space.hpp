// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/search/candidate.hpp"

namespace trainsim::search {

/// Values that a search may give to each setting; an empty list stands for the usual ones (enumerate).
struct Space {
  std::vector<std::int64_t> tensor_parallel;
  std::vector<std::int64_t> pipeline_parallel;
  std::vector<std::int64_t> virtual_pipeline;
  std::vector<std::int64_t> micro_batch_size;
  std::vector<plan::ScheduleKind> schedule;
  std::vector<bool> sequence_parallel;
  std::vector<RecomputeChoice> recompute;
  std::vector<plan::Sharding> sharding;
  std::vector<std::int64_t> context_parallel;
  std::vector<std::int64_t> expert_parallel;
};

/// Candidates that a rule forbids.
struct Illegal {
  /// The field that the rule names.
  std::string field;
  std::int64_t count = 0;
  /// What is wrong with the first of them.
  std::string example;
};

/// All candidates of a space.
struct Enumeration {
  std::vector<Candidate> legal;
  /// Most frequent first.
  std::vector<Illegal> illegal;
  /// Both together.
  std::int64_t considered = 0;
};

/// All combinations of a space's values. Those that differ only in recomputation and micro-batch follow each
/// other. Where a list of the space is empty:
///
/// - tensor_parallel: divisors of the number of GPUs up to the number of attention heads;
/// - pipeline_parallel: divisors of what is left, up to the number of layers;
/// - context_parallel: as the configuration says;
/// - expert_parallel: 1 and whatever else divides both the experts of a layer and the ranks of a stage;
/// - virtual_pipeline: 1, and chunks that deal out the layers evenly, or the layers with embedding and head
///   counted as one each;
/// - micro_batch_size: divisors of a replica's share of the batch, up to 64;
/// - schedule: 1f1b and gpipe for one chunk, interleaved for several (of given ones, zero-bubble ones among
///   them, those that suit; 1f1b for one stage);
/// - sequence_parallel: true with tensor parallelism if the configuration leaves it open, else as it says;
/// - recompute: none, selective, attention with norms and activations, attention with the MLP (and experts),
///   full, and as few layers as make the plan fit;
/// - sharding: none, zero1; without a pipeline, or if the configuration is FSDP's, zero2, zero3.
///
/// The configuration's own plan is in it only if its settings are. Legal is what plan::check accepts.
Enumeration enumerate(const Space& space, const Base& base);

/// Chunks per stage that deal out the layers evenly, or the layers with embedding and head counted as one
/// each; 1 comes first and is always among them.
std::vector<std::int64_t> even_chunks(std::int64_t layers, std::int64_t stages);

/// Gives one setting its values, as in "micro_batch_size=1,2,4" or "plan.recompute=none,core_attn+mlp,block".
/// Throws InputError that names the setting, or the value, that is not known.
void restrict_space(Space& space, const std::string& assignment);

}  // namespace trainsim::search
