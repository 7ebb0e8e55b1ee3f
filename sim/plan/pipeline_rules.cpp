// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "sim/base/spelling.hpp"
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

/// Numbers of chunks that give every stage the same number of layers, or all that are possible.
std::string legal_chunks(const Facts& facts) {
  const std::int64_t most = facts.model.num_layers / facts.plan.pipeline_parallel;
  std::vector<std::int64_t> even;
  if (facts.model.num_layers % facts.plan.pipeline_parallel == 0) even = divisors(most);
  std::erase(even, 1);
  if (!even.empty()) return join_numbers(even);
  return most < 2 ? "none, the model has too few layers" : "2 to " + text(most);
}

void check_schedule(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const bool interleaved = plan.schedule == ScheduleKind::kInterleaved;
  if (plan.virtual_pipeline > 1 && plan.pipeline_parallel == 1) {
    problems.push_back({"plan.virtual_pipeline", text(plan.virtual_pipeline) +
                                                     " chunks need a pipeline; write virtual_pipeline: 1, or "
                                                     "pipeline_parallel of at least 2"});
  } else if (plan.virtual_pipeline > 1 && !interleaved) {
    problems.push_back({"plan.schedule", to_string(plan.schedule) +
                                             " runs one chunk per rank, not virtual_pipeline " +
                                             text(plan.virtual_pipeline) +
                                             "; write schedule: interleaved or virtual_pipeline: 1"});
  } else if (plan.virtual_pipeline == 1 && plan.pipeline_parallel > 1 && interleaved) {
    problems.push_back({"plan.schedule",
                        "interleaved needs virtual_pipeline of at least 2 (model chunks per rank); "
                        "legal here: " +
                            legal_chunks(facts) + "; or write schedule: 1f1b"});
  }
}

/// The most pipeline stages that the layers fill and the GPUs allow.
std::int64_t most_stages(const Facts& facts) {
  for (std::int64_t stages = facts.model.num_layers; stages > 1; --stages) {
    if (facts.plan.gpus % (facts.plan.tensor_parallel * facts.plan.context_parallel * stages) == 0)
      return stages;
  }
  return 1;
}

void check_stages(const Facts& facts, Problems& problems) {
  const auto& [plan, model, cluster] = facts;
  if (!plan.pipeline_layout.empty() || plan.virtual_stages() <= model.num_layers) return;
  const std::string layers = "more than the " + text(model.num_layers) + " layers; largest legal: ";
  const std::int64_t chunks = model.num_layers / plan.pipeline_parallel;
  if (plan.virtual_pipeline == 1 || chunks == 0) {
    problems.push_back({"plan.pipeline_parallel",
                        text(plan.pipeline_parallel) + " stages are " + layers + text(most_stages(facts))});
  } else {
    problems.push_back({"plan.virtual_pipeline",
                        text(plan.virtual_pipeline) + " x pipeline_parallel " + text(plan.pipeline_parallel) +
                            " = " + text(plan.virtual_stages()) + " chunks are " + layers + text(chunks)});
  }
}

void check_layout(const Facts& facts, Problems& problems) {
  const std::vector<std::int64_t>& layout = facts.plan.pipeline_layout;
  if (layout.empty()) return;
  const auto entries = static_cast<std::int64_t>(layout.size());
  if (entries != facts.plan.virtual_stages()) {
    problems.push_back(
        {"plan.pipeline_layout", text(entries) + " entries, but pipeline_parallel " +
                                     text(facts.plan.pipeline_parallel) + " x virtual_pipeline " +
                                     text(facts.plan.virtual_pipeline) + " = " +
                                     text(facts.plan.virtual_stages()) + " stages; give one for each"});
  }
  const std::int64_t sum = std::accumulate(layout.begin(), layout.end(), std::int64_t{0});
  if (sum != facts.model.num_layers) {
    problems.push_back({"plan.pipeline_layout", "the entries add up to " + text(sum) + ", not to the " +
                                                    text(facts.model.num_layers) + " layers of the model"});
  }
  for (std::size_t i = 1; i + 1 < layout.size(); ++i) {
    if (layout[i] > 0) continue;
    problems.push_back(
        {"plan.pipeline_layout[" + std::to_string(i) + "]",
         "a stage without layers; only the first and the last, which hold embedding and head, may be "
         "empty"});
  }
}

void check_recompute(const Facts& facts, Problems& problems) {
  const Recompute& recompute = facts.plan.recompute;
  // Too many stages for the layers are another rule's affair.
  const bool divisible =
      !facts.plan.pipeline_layout.empty() || facts.plan.virtual_stages() <= facts.model.num_layers;
  if (recompute.granularity != RecomputeGranularity::kFull || !divisible) return;
  const std::vector<std::int64_t> layers = stage_layers(facts.plan, facts.model);
  const std::int64_t most = *std::max_element(layers.begin(), layers.end());
  if (recompute.layers <= most) return;
  problems.push_back({"plan.recompute.layers", text(recompute.layers) + " is more than the " + text(most) +
                                                   " layers of the largest stage; legal here: 1 to " +
                                                   text(most)});
}

/// Micro-batches that recompute less need a pipeline, which has several in flight, and must be less to do.
void check_partial(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const Recompute& recompute = plan.recompute;
  if (recompute.partial_micro_batches == 0) return;
  if (plan.pipeline_parallel == 1) {
    problems.push_back(
        {"plan.recompute.partial_micro_batches",
         "with pipeline_parallel 1 a single micro-batch is in flight; write method: block with "
         "layers, the number of layers to recompute, or pipeline_parallel of at least 2"});
  }
  const bool divisible = !plan.pipeline_layout.empty() || plan.virtual_stages() <= facts.model.num_layers;
  if (!divisible) return;
  const bool block =
      recompute.granularity == RecomputeGranularity::kFull && recompute.method == RecomputeMethod::kBlock;
  const std::vector<std::int64_t> layers = stage_layers(plan, facts.model);
  const std::int64_t most = block ? recompute.layers : *std::max_element(layers.begin(), layers.end());
  if (recompute.partial_layers < most) return;
  problems.push_back({"plan.recompute.partial_layers",
                      text(recompute.partial_layers) + " is not less than the " + text(most) +
                          " layers that other micro-batches recompute of a chunk; legal here: 0 to " +
                          text(most - 1)});
}

void check_profile(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const auto entries = static_cast<std::int64_t>(plan.profile.size());
  if (entries < 2) return;
  if (entries != plan.pipeline_parallel) {
    problems.push_back({"plan.profile", "times of " + text(entries) + " stages, but pipeline_parallel is " +
                                            text(plan.pipeline_parallel) +
                                            "; give one entry for each stage, or one mapping for all"});
    return;
  }
  const bool stages_known = static_cast<std::int64_t>(plan.pipeline_layout.size()) == plan.virtual_stages() ||
                            (plan.pipeline_layout.empty() && plan.virtual_stages() <= facts.model.num_layers);
  if (!stages_known) return;
  for (std::int64_t stage = 0; stage < entries; ++stage) {
    if (layers_of_stage(plan, facts.model, stage) > 0) continue;
    problems.push_back({"plan.profile[" + text(stage) + "]",
                        "a stage without layers, over which its times could be spread; give it a layer, or "
                        "one mapping for all stages"});
  }
}

/// What is not modelled together with weight gradients in slots of their own.
void check_split_backward(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!plan.splits_backward()) return;
  const auto refuse = [&](const std::string& what) {
    problems.push_back({"plan.schedule", to_string(plan.schedule) + " with " + what +
                                             " is not supported by this version; write schedule: 1f1b"});
  };
  if (facts.model.experts.active()) refuse("experts");
  if (facts.model.latent.active()) refuse("latent attention");
  if (plan.lora.active()) refuse("low-rank adaptation");
  if (plan.works_by_units()) refuse(to_string(plan.sharding));
  for (std::size_t i = 0; i < plan.profile.size(); ++i) {
    if (plan.profile[i].weight > 0) continue;
    problems.push_back({plan.profile.size() == 1 ? "plan.profile"
                                                 : "plan.profile[" + text(static_cast<std::int64_t>(i)) + "]",
                        to_string(plan.schedule) +
                            " puts weight gradients off, so that it must be known what they take; give "
                            "weight, a part of backward"});
  }
}

void check_parameter_gather(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!plan.overlap_parameter_gather || plan.sharding == Sharding::kZero1) return;
  problems.push_back({"plan.overlap_parameter_gather",
                      "true needs sharding zero1, not " + to_string(plan.sharding) +
                          (plan.sharding == Sharding::kNone
                               ? ": there is nothing to gather; remove this key or write sharding: zero1"
                               : ", which always gathers under the forward; remove this key")});
}

void check_shard_group(const Facts& facts, Problems& problems) {
  const std::int64_t group = facts.plan.shard_group;
  const std::int64_t ranks = facts.plan.data_context_ranks();
  if (group < 1 || !facts.grid_fits() || ranks % group == 0) return;
  const std::string shared = facts.plan.context_parallel < 2
                                 ? ""
                                 : text(facts.plan.data_parallel) + " x context_parallel " +
                                       text(facts.plan.context_parallel) + " = ";
  problems.push_back({"plan.sharding.group", text(group) + " does not divide data_parallel " + shared +
                                                 text(ranks) +
                                                 "; legal here: " + join_numbers(divisors(ranks))});
}

/// Sharded parameters are gathered layer by layer, for which groups of recomputed layers are not ready.
void check_sharding(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (plan.keeps_gathered && plan.framework != Framework::kFsdp) {
    problems.push_back({"plan.sharding.reshard_after_forward",
                        "false is FSDP's shard_grad_op, and software.framework is " +
                            to_string(plan.framework) + "; remove one of the two" +
                            (plan.framework == Framework::kInternEvo ? "" : ", or write stage: 2")});
  }
  if (plan.sharding != Sharding::kZero2 && plan.sharding != Sharding::kZero3) return;
  const bool several = plan.pipeline_parallel > 1 || plan.schedule == ScheduleKind::kGpipe;
  if (several && plan.framework != Framework::kFsdp) {
    const std::string with = plan.pipeline_parallel > 1 ? "pipeline_parallel " + text(plan.pipeline_parallel)
                                                        : "schedule " + to_string(plan.schedule);
    problems.push_back(
        {"plan.sharding",
         to_string(plan.sharding) + " with " + with + " is FSDP's, and software.framework is " +
             to_string(plan.framework) +
             ", which would reduce gradients in every micro-batch; legal here: none or zero1, or " +
             (plan.pipeline_parallel > 1 ? "pipeline_parallel 1" : "schedule: 1f1b") +
             ", or software.framework: fsdp"});
  }
  const Recompute& recompute = plan.recompute;
  const bool groups = recompute.granularity == RecomputeGranularity::kFull &&
                      recompute.method == RecomputeMethod::kUniform && recompute.layers > 1;
  if (!groups) return;
  problems.push_back({"plan.recompute.layers", text(recompute.layers) + " with sharding " +
                                                   to_string(plan.sharding) +
                                                   " is not supported by this version; legal here: 1"});
}

}  // namespace

std::vector<Rule> pipeline_rules() {
  return {
      {{"plan.virtual_pipeline", "plan.pipeline_parallel", "plan.schedule", "model.num_layers"},
       check_schedule},
      {{"plan.virtual_pipeline", "plan.pipeline_parallel", "plan.pipeline_layout", "model.num_layers"},
       check_stages},
      {{"plan.virtual_pipeline", "plan.pipeline_parallel", "plan.pipeline_layout", "model.num_layers"},
       check_layout},
      {{"plan.virtual_pipeline", "plan.pipeline_parallel", "plan.pipeline_layout", "model.num_layers",
        "plan.recompute"},
       check_recompute},
      {{"plan.virtual_pipeline", "plan.pipeline_parallel", "plan.pipeline_layout", "model.num_layers",
        "plan.recompute"},
       check_partial},
      {{"plan.virtual_pipeline", "plan.pipeline_parallel", "plan.pipeline_layout", "model.num_layers",
        "plan.profile"},
       check_profile},
      {{"plan.sharding", "plan.pipeline_parallel", "plan.schedule", "plan.recompute", "software.framework"},
       check_sharding},
      {{"plan.schedule", "plan.sharding", "plan.lora", "plan.profile", "model.experts",
        "model.latent_attention"},
       check_split_backward},
      {{"plan.sharding", "plan.overlap_parameter_gather"}, check_parameter_gather},
      {{"gpus", "plan.sharding", "plan.data_parallel", "plan.tensor_parallel", "plan.context_parallel",
        "plan.pipeline_parallel", "cluster.gpus_per_node"},
       check_shard_group},
  };
}

}  // namespace trainsim::plan
