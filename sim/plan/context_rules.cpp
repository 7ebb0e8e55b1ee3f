// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

/// Query and key/value heads of a tensor-parallel rank.
std::int64_t query_heads(const Facts& facts) {
  return std::max<std::int64_t>(1, facts.model.num_attention_heads / facts.plan.tensor_parallel);
}
std::int64_t key_value_heads(const Facts& facts) {
  return std::max<std::int64_t>(1, facts.model.num_key_value_heads / facts.plan.tensor_parallel);
}

/// Frameworks other than Megatron-LM repeat key/value heads for every query head before.
bool splits_heads(const Facts& facts, std::int64_t degree) {
  const bool repeated = facts.plan.framework != Framework::kMegatron;
  return query_heads(facts) % degree == 0 && (repeated || key_value_heads(facts) % degree == 0);
}

/// Degrees of context parallelism that this sequence, the way of exchanging and the number of GPUs allow.
std::string legal_context_parallel(const Facts& facts) {
  const ParallelPlan& plan = facts.plan;
  const std::int64_t rest =
      plan.gpus / std::max<std::int64_t>(1, plan.tensor_parallel * plan.pipeline_parallel);
  const std::int64_t length = facts.model.sequence_length;
  std::vector<std::int64_t> legal = {1};
  for (const std::int64_t degree : divisors(std::max<std::int64_t>(1, rest))) {
    const bool shards =
        !plan.sequence_parallel || length % degree != 0 || length / degree % plan.tensor_parallel == 0;
    const bool heads =
        plan.context_communication != ContextCommunication::kAllToAll || splits_heads(facts, degree);
    if (degree > 1 && length % (2 * degree) == 0 && shards && heads) legal.push_back(degree);
  }
  return "legal here: " + join_numbers(legal);
}

/// Every rank holds two chunks, the i-th from the front and the i-th from the back, so that all have as much
/// of a causal mask (Megatron-LM's get_batch_on_this_cp_rank).
void check_chunks(const Facts& facts, Problems& problems) {
  const std::int64_t degree = facts.plan.context_parallel;
  const std::int64_t length = facts.model.sequence_length;
  const std::int64_t unit = 2 * degree;
  if (degree < 2 || length % unit == 0) return;
  problems.push_back(
      {"plan.context_parallel", text(degree) + " needs two equal chunks of the sequence on each rank, and " +
                                    text(length) + " is not a multiple of " + text(unit) + "; pad to " +
                                    text((length / unit + 1) * unit) + "; " + legal_context_parallel(facts)});
}

void check_shards_of_chunks(const Facts& facts, Problems& problems) {
  const std::int64_t degree = facts.plan.context_parallel;
  const std::int64_t tensor = facts.plan.tensor_parallel;
  const std::int64_t length = facts.model.sequence_length;
  // Other rules say what is wrong with a sequence that either of the two can't split alone.
  if (!facts.plan.sequence_parallel || degree < 2 || length % (2 * degree) != 0 || length % tensor != 0)
    return;
  if (length / degree % tensor == 0) return;
  problems.push_back({"plan.context_parallel",
                      text(degree) + " leaves " + text(length / degree) +
                          " tokens to a rank, which sequence_parallel can't split over tensor_parallel " +
                          text(tensor) + "; pad to a multiple of " + text(degree * tensor) + "; " +
                          legal_context_parallel(facts)});
}

void check_exchanged_heads(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const std::int64_t degree = plan.context_parallel;
  if (plan.context_communication != ContextCommunication::kAllToAll || splits_heads(facts, degree)) return;
  const bool queries = query_heads(facts) % degree != 0;
  problems.push_back({"plan.context_communication",
                      "a2a splits attention by heads, and context_parallel " + text(degree) +
                          " does not divide the " +
                          text(queries ? query_heads(facts) : key_value_heads(facts)) +
                          (queries ? " query" : " key/value") + " heads of a tensor-parallel rank; " +
                          legal_context_parallel(facts) + "; or write p2p or all_gather"});
}

void check_attention(const Facts& facts, Problems& problems) {
  if (facts.plan.context_parallel < 2 || facts.model.attention != model::Attention::kStandard) return;
  problems.push_back({"model.attention",
                      "standard attention can't be put together from parts of a sequence, as "
                      "context_parallel " +
                          text(facts.plan.context_parallel) +
                          " needs; write attention: flash, or context_parallel: 1"});
}

void check_latents(const Facts& facts, Problems& problems) {
  if (facts.plan.context_parallel < 2 || !facts.model.latent.active()) return;
  problems.push_back({"plan.context_parallel",
                      "sharing each sequence of a model with latent attention is not supported by this "
                      "version; legal here: 1"});
}

}  // namespace

std::vector<Rule> context_rules() {
  return {
      {{"plan.context_parallel", "model.sequence_length"}, check_chunks},
      {{"plan.context_parallel", "plan.tensor_parallel", "plan.sequence_parallel", "model.sequence_length"},
       check_shards_of_chunks},
      {{"plan.context_parallel", "plan.context_communication", "plan.tensor_parallel",
        "model.num_attention_heads", "model.num_key_value_heads"},
       check_exchanged_heads},
      {{"plan.context_parallel", "model.attention"}, check_attention},
      {{"plan.context_parallel", "model.latent_attention"}, check_latents},
  };
}

}  // namespace trainsim::plan
