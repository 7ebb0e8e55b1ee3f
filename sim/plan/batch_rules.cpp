// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "sim/base/spelling.hpp"
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

void check_batch(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const std::int64_t unit = plan.micro_batch_size * plan.data_parallel;
  if (!facts.grid_fits() || plan.global_batch_size % unit == 0) return;
  std::string message = text(plan.global_batch_size) + " is not a multiple of micro_batch_size " +
                        text(plan.micro_batch_size) + " x data_parallel " + text(plan.data_parallel) + " = " +
                        text(unit) + "; nearest legal: " + nearest_multiples(plan.global_batch_size, unit);
  if (plan.global_batch_size % plan.data_parallel == 0) {
    const std::int64_t per_rank = plan.global_batch_size / plan.data_parallel;
    message += "; or micro_batch_size " + join_numbers(divisors(per_rank));
  }
  problems.push_back({"plan.global_batch_size", std::move(message)});
}

void check_interleaved_batch(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const std::int64_t unit = plan.micro_batch_size * plan.data_parallel;
  const bool interleaved = plan.schedule == ScheduleKind::kInterleaved && plan.virtual_pipeline > 1;
  if (!interleaved || !facts.grid_fits() || plan.global_batch_size % unit != 0) return;
  const std::int64_t micro_batches = plan.micro_batches();
  const std::int64_t stages = plan.pipeline_parallel;
  if (micro_batches % stages == 0) return;
  problems.push_back(
      {"plan.global_batch_size",
       "the global batch of " + text(plan.global_batch_size) + " makes " + text(micro_batches) +
           (micro_batches == 1 ? " micro-batch" : " micro-batches") +
           ", but schedule: interleaved needs a multiple of pipeline_parallel " + text(stages) +
           "; nearest legal global_batch_size: " + nearest_multiples(plan.global_batch_size, unit * stages)});
}

/// Sizes are counted in 64 bits: what one micro-batch leaves in memory must stay far below that.
void check_activations(const Facts& facts, Problems& problems) {
  constexpr double most_bytes = 1e17;
  const auto& [plan, model, cluster] = facts;
  const bool scores = model.attention == model::Attention::kStandard;
  const double row =
      static_cast<double>(std::max({model.hidden_size, model.intermediate_size, model.vocab_size})) +
      (scores ? static_cast<double>(model.num_attention_heads) * static_cast<double>(model.sequence_length)
              : 0.0) +
      static_cast<double>(model.experts.per_token) *
          static_cast<double>(model.experts.active() ? model.hidden_size + model.experts.intermediate_size
                                                     : 0);
  const double tokens =
      static_cast<double>(plan.micro_batch_size) * static_cast<double>(model.sequence_length);
  if (tokens * row * static_cast<double>(model.num_layers) < most_bytes) return;
  problems.push_back(
      {"plan.micro_batch_size", text(plan.micro_batch_size) + " sequences of " + text(model.sequence_length) +
                                    " tokens are more than any memory could hold; reduce either"});
}

/// Micro-batches times layers that a program may hold; a step of GPT-3 175B has about 10^4 to 10^5.
constexpr std::int64_t kMostLayerPasses = 4'000'000;

/// Instructions of a layer grow with the steps of ring attention.
std::int64_t parts_of_layer(const ParallelPlan& plan) {
  const bool ring = plan.context_communication == ContextCommunication::kP2p;
  return ring ? std::max<std::int64_t>(1, plan.context_parallel) : 1;
}

/// A program has an instruction for every layer of every micro-batch, so there must be an end to them.
void check_program_size(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const std::int64_t layers = std::max(facts.model.num_layers, plan.virtual_stages());
  const std::int64_t most = kMostLayerPasses / layers / parts_of_layer(plan);
  if (plan.data_parallel < 1 || plan.micro_batches() <= most) return;
  const std::string parts_text =
      parts_of_layer(plan) > 1 ? " in " + text(parts_of_layer(plan)) + " parts each" : "";
  problems.push_back(
      {"plan.global_batch_size", text(plan.global_batch_size) + " makes " + text(plan.micro_batches()) +
                                     " micro-batches a step, and with " + text(layers) + " layers" +
                                     parts_text + " that is more than can be simulated; at most " +
                                     text(most) + " micro-batches here, a batch of " +
                                     text(most * plan.micro_batch_size * plan.data_parallel)});
}

}  // namespace

std::vector<Rule> batch_rules() {
  return {
      {{"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel",
        "plan.data_parallel", "plan.micro_batch_size", "plan.global_batch_size",
        "plan.gradient_accumulation"},
       check_batch},
      {{"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel",
        "plan.virtual_pipeline", "plan.schedule", "plan.data_parallel", "plan.micro_batch_size",
        "plan.global_batch_size", "plan.gradient_accumulation"},
       check_interleaved_batch},
      {{"plan.micro_batch_size", "model"}, check_activations},
      {{"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel",
        "plan.virtual_pipeline", "plan.data_parallel", "plan.micro_batch_size", "plan.global_batch_size",
        "plan.gradient_accumulation", "plan.context_communication", "model"},
       check_program_size},
  };
}

}  // namespace trainsim::plan
