// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/spec.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::search {

/// What backward recomputes.
struct RecomputeChoice {
  plan::Recompute recompute;
  /// Full recomputation of the first layers of each chunk, of as few as make the plan fit. How many is found
  /// out when the plan is ranked; `recompute` is none until then.
  bool fewest_layers = false;
};

/// The settings of a plan that a search varies. The rest is the configuration's.
struct Candidate {
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t virtual_pipeline = 1;
  std::int64_t data_parallel = 1;
  std::int64_t micro_batch_size = 1;
  plan::ScheduleKind schedule = plan::ScheduleKind::kOneFOneB;
  bool sequence_parallel = false;
  RecomputeChoice recompute;
  plan::Sharding sharding = plan::Sharding::kNone;
  std::int64_t context_parallel = 1;
  std::int64_t expert_parallel = 1;
};

/// What candidates are laid over: the resolved plan of a configuration, for its model and cluster.
struct Base {
  plan::ParallelPlan plan;
  model::ModelSpec model;
  hardware::ClusterSpec cluster;
  /// Keys that the configuration leaves open, such as "plan.schedule".
  std::vector<std::string> open_keys;

  /// Whether the configuration leaves a key open.
  bool is_open(const std::string& key) const;
};

/// The configuration's own plan as a candidate.
Candidate candidate_of(const plan::ParallelPlan& plan);

/// The plan of a configuration with the candidate's settings. A framework that is left open follows its
/// sharding, as in a configuration. A written layout of layers belongs to its own pipeline, and what is
/// written with a stage of sharding (group, units, offload) to that; both are left out for others. Experts
/// that all tensor-parallel ranks share are shared by those of the candidate.
plan::ParallelPlan applied(const Candidate& candidate, const Base& base);

/// The `--set` overrides that turn a configuration into the candidate; none for its own plan. What a value
/// that is left open follows from other keys stays open.
std::vector<std::string> overrides_for(const Candidate& candidate, const Base& base);

/// "plan.tensor_parallel=8".
std::string assignment(const std::string& key, std::int64_t value);

/// The value of `plan.recompute` that means it, in YAML.
std::string recompute_value(const plan::Recompute& recompute);
/// In a word, as `--vary recompute=` takes it: "none", "selective", "core_attn+mlp", "full", "block 3".
std::string to_string(const plan::Recompute& recompute);

/// Whether the first of two plans that are equally good comes first: less tensor parallelism, then pipeline
/// parallelism, spreading of experts, chunks, micro-batch, a simpler schedule, less recomputation, less
/// sharding. A strict weak order.
bool simpler(const plan::ParallelPlan& a, const plan::ParallelPlan& b);

}  // namespace trainsim::search
