// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/spelling.hpp"
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

using model::ModelSpec;

bool splits_groups(std::int64_t tensor_parallel, std::int64_t groups) {
  return groups % tensor_parallel == 0 || tensor_parallel % groups == 0;
}

/// Degrees of tensor parallelism that this model, pipeline and number of GPUs allow.
std::string legal_tensor_parallel(const Facts& facts) {
  const auto& [plan, model, cluster] = facts;
  const std::int64_t stages = std::max<std::int64_t>(1, plan.pipeline_parallel * plan.context_parallel);
  std::vector<std::int64_t> fit_model;
  std::vector<std::int64_t> fit_both;
  for (const std::int64_t degree : divisors(model.num_attention_heads)) {
    const bool sequence_fits = !plan.sequence_parallel || model.sequence_length % degree == 0;
    const bool widths_fit =
        model.intermediate_size % degree == 0 &&
        (model.num_key_value_heads < 1 || splits_groups(degree, model.num_key_value_heads));
    if (!sequence_fits || !widths_fit) continue;
    fit_model.push_back(degree);
    if (plan.gpus % (degree * stages) == 0) fit_both.push_back(degree);
  }
  // A wrong number of GPUs is another rule's affair.
  return "; legal here: " + join_numbers(fit_both.empty() ? fit_model : fit_both);
}

void check_heads(const Facts& facts, Problems& problems) {
  const std::int64_t heads = facts.model.num_attention_heads;
  if (heads % facts.plan.tensor_parallel == 0) return;
  problems.push_back({"plan.tensor_parallel", text(facts.plan.tensor_parallel) + " does not divide the " +
                                                  text(heads) + " attention heads" +
                                                  legal_tensor_parallel(facts)});
}

void check_key_value_heads(const Facts& facts, Problems& problems) {
  const std::int64_t groups = facts.model.num_key_value_heads;
  // Without grouping the rule about heads says it all.
  if (groups == facts.model.num_attention_heads) return;
  if (splits_groups(facts.plan.tensor_parallel, groups)) return;
  problems.push_back({"plan.tensor_parallel", text(facts.plan.tensor_parallel) + " and the " + text(groups) +
                                                  " key/value heads do not divide one another" +
                                                  legal_tensor_parallel(facts)});
}

void check_intermediate_size(const Facts& facts, Problems& problems) {
  const std::int64_t width = facts.model.intermediate_size;
  if (width % facts.plan.tensor_parallel == 0) return;
  problems.push_back({"plan.tensor_parallel", text(facts.plan.tensor_parallel) +
                                                  " does not divide the intermediate_size " + text(width) +
                                                  legal_tensor_parallel(facts)});
}

void check_sequence(const Facts& facts, Problems& problems) {
  const std::int64_t length = facts.model.sequence_length;
  const std::int64_t degree = facts.plan.tensor_parallel;
  if (!facts.plan.sequence_parallel || length % degree == 0) return;
  problems.push_back({"model.sequence_length", text(length) + " is not a multiple of tensor_parallel " +
                                                   text(degree) + ", as sequence_parallel needs; pad to " +
                                                   text((length / degree + 1) * degree) +
                                                   ", or write sequence_parallel: false"});
}

void check_positions(const Facts& facts, Problems& problems) {
  const ModelSpec& model = facts.model;
  const bool table = model.position_embedding == model::PositionEmbedding::kLearned;
  if (!table || model.sequence_length <= model.max_position_embeddings) return;
  problems.push_back({"model.sequence_length",
                      text(model.sequence_length) + " is longer than the table of " +
                          text(model.max_position_embeddings) +
                          " learned positions; shorten it, or raise model.max_position_embeddings"});
}

/// Wider adapters than the layer would be larger than the weights they stand beside.
void check_adapter_rank(const Facts& facts, Problems& problems) {
  const std::int64_t rank = facts.plan.lora.rank;
  const std::int64_t width = facts.model.hidden_size;
  if (!facts.plan.lora.active() || rank <= width) return;
  problems.push_back({"plan.lora.rank", text(rank) + " is more than the hidden_size " + text(width) +
                                            "; an adapter is narrower than its layer, usually 8 to 64"});
}

}  // namespace

std::vector<Rule> tensor_rules() {
  return {
      {{"plan.tensor_parallel", "model.num_attention_heads"}, check_heads},
      {{"plan.tensor_parallel", "model.num_key_value_heads"}, check_key_value_heads},
      {{"plan.tensor_parallel", "model.intermediate_size"}, check_intermediate_size},
      {{"plan.tensor_parallel", "plan.sequence_parallel", "model.sequence_length"}, check_sequence},
      {{"model.sequence_length", "model.max_position_embeddings", "model.position_embedding"},
       check_positions},
      {{"plan.lora.rank", "model.hidden_size"}, check_adapter_rank},
  };
}

}  // namespace trainsim::plan
