// SPDX-License-Identifier: Apache-2.0
#include "sim/search/candidate.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace trainsim::search {

namespace {

using plan::ParallelPlan;
using plan::Recompute;
using plan::RecomputeGranularity;
using plan::RecomputeMethod;

auto key_of(const Recompute& recompute) {
  const plan::RecomputeModules& modules = recompute.modules;
  // Modules mean nothing unless recomputation is selective, nor do layers unless it is full.
  const bool selective = recompute.granularity == RecomputeGranularity::kSelective;
  const bool full = recompute.granularity == RecomputeGranularity::kFull;
  return std::tuple(recompute.granularity, selective && modules.core_attention, selective && modules.norm,
                    selective && modules.activation, selective && modules.mlp, selective && modules.experts,
                    full ? recompute.method : RecomputeMethod::kUniform, full ? recompute.layers : 0,
                    recompute.partial_micro_batches, recompute.partial_layers);
}

bool same(const Recompute& a, const Recompute& b) {
  return key_of(a) == key_of(b);
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

/// Collects overrides.
class Overrides {
 public:
  explicit Overrides(const Base& base) : base_(base) {}
  /// Sets a value that differs from the configuration's.
  void set(const std::string& key, std::int64_t value, std::int64_t before) {
    if (value != before) list_.push_back(assignment(key, value));
  }
  /// The same for a value whose default follows from others, so that it can't stay open.
  void fix(const std::string& key, const std::string& value, const std::string& before) {
    if (value != before || base_.is_open(key)) list_.push_back(key + "=" + value);
  }
  void add(const std::string& text) { list_.push_back(text); }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  const Base& base_;
  std::vector<std::string> list_;
};

bool same_settings(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    return std::tuple(c.tensor_parallel, c.pipeline_parallel, c.virtual_pipeline, c.data_parallel,
                      c.micro_batch_size, c.schedule, c.sequence_parallel, c.sharding,
                      c.recompute.fewest_layers, c.context_parallel, c.expert_parallel);
  };
  return key(a) == key(b) && same(a.recompute.recompute, b.recompute.recompute);
}

}  // namespace

bool Base::is_open(const std::string& key) const {
  return std::find(open_keys.begin(), open_keys.end(), key) != open_keys.end();
}

Candidate candidate_of(const ParallelPlan& plan) {
  return {plan.tensor_parallel,  plan.pipeline_parallel, plan.virtual_pipeline,  plan.data_parallel,
          plan.micro_batch_size, plan.schedule,          plan.sequence_parallel, {plan.recompute, false},
          plan.sharding,         plan.context_parallel,  plan.expert_parallel};
}

ParallelPlan applied(const Candidate& candidate, const Base& base) {
  ParallelPlan plan = base.plan;
  const bool same_pipeline = candidate.pipeline_parallel == plan.pipeline_parallel &&
                             candidate.virtual_pipeline == plan.virtual_pipeline;
  if (!same_pipeline) plan.pipeline_layout.clear();
  if (candidate.sharding != plan.sharding) {
    plan.shard_group = 0;
    plan.keeps_gathered = false;
    plan.units = {};
    plan.offload = {};
  }
  plan.tensor_parallel = candidate.tensor_parallel;
  plan.pipeline_parallel = candidate.pipeline_parallel;
  plan.virtual_pipeline = candidate.virtual_pipeline;
  plan.data_parallel = candidate.data_parallel;
  plan.micro_batch_size = candidate.micro_batch_size;
  plan.schedule = candidate.schedule;
  plan.sequence_parallel = candidate.sequence_parallel;
  plan.recompute = candidate.recompute.recompute;
  plan.sharding = candidate.sharding;
  plan.context_parallel = candidate.context_parallel;
  plan.expert_parallel = candidate.expert_parallel;
  if (plan.expert_tensor_parallel > 1) plan.expert_tensor_parallel = candidate.tensor_parallel;
  if (base.is_open("software.framework")) plan.framework = plan::usual_framework(plan.sharding);
  if (base.is_open("software.transformer_engine"))
    plan.transformer_engine = plan::usual_transformer_engine(plan.framework, base.model.attention);
  if (base.is_open("software.checkpoint_early_stop"))
    plan.checkpoint_early_stop = plan::usual_early_stop(plan.framework);
  if (base.is_open("software.fused_linears"))
    plan.fused_linears = plan::usual_fused_linears(plan.framework, base.model.gated());
  return plan;
}

std::vector<std::string> overrides_for(const Candidate& candidate, const Base& base) {
  const ParallelPlan& plan = base.plan;
  if (same_settings(candidate, candidate_of(plan))) return {};
  Overrides overrides(base);
  overrides.set("plan.tensor_parallel", candidate.tensor_parallel, plan.tensor_parallel);
  overrides.set("plan.context_parallel", candidate.context_parallel, plan.context_parallel);
  overrides.set("plan.expert_parallel", candidate.expert_parallel, plan.expert_parallel);
  overrides.set("plan.expert_tensor_parallel", applied(candidate, base).expert_tensor_parallel,
                plan.expert_tensor_parallel);
  overrides.set("plan.pipeline_parallel", candidate.pipeline_parallel, plan.pipeline_parallel);
  overrides.set("plan.virtual_pipeline", candidate.virtual_pipeline, plan.virtual_pipeline);
  if (!base.is_open("plan.data_parallel"))
    overrides.set("plan.data_parallel", candidate.data_parallel, plan.data_parallel);
  overrides.set("plan.micro_batch_size", candidate.micro_batch_size, plan.micro_batch_size);
  if (base.is_open("plan.global_batch_size"))
    overrides.add(assignment("plan.global_batch_size", plan.global_batch_size));
  if (!base.is_open("plan.gradient_accumulation"))
    overrides.set("plan.gradient_accumulation", applied(candidate, base).micro_batches(),
                  plan.micro_batches());
  overrides.fix("plan.schedule", plan::to_string(candidate.schedule), plan::to_string(plan.schedule));
  if (candidate.sequence_parallel != plan.sequence_parallel)
    overrides.add(std::string("plan.sequence_parallel=") + (candidate.sequence_parallel ? "true" : "false"));
  if (!same(candidate.recompute.recompute, plan.recompute))
    overrides.add("plan.recompute=" + recompute_value(candidate.recompute.recompute));
  if (candidate.sharding != plan.sharding)
    overrides.add("plan.sharding=" + plan::to_string(candidate.sharding));
  if (applied(candidate, base).pipeline_layout.size() != plan.pipeline_layout.size())
    overrides.add("plan.pipeline_layout=[]");
  return overrides.take();
}

std::string assignment(const std::string& key, std::int64_t value) {
  return key + "=" + std::to_string(value);
}

std::string recompute_value(const Recompute& recompute) {
  const std::string partial =
      recompute.partial_micro_batches == 0
          ? ""
          : ", partial_micro_batches: " + std::to_string(recompute.partial_micro_batches) +
                ", partial_layers: " + std::to_string(recompute.partial_layers);
  switch (recompute.granularity) {
    case RecomputeGranularity::kNone:
      return "none";
    case RecomputeGranularity::kSelective:
      return "{granularity: selective, modules: [" + joined(plan::module_names(recompute.modules), ", ") +
             "]" + partial + "}";
    case RecomputeGranularity::kOperators:
      return "operators";
    case RecomputeGranularity::kFull:
      break;
  }
  const bool plain = recompute.method == RecomputeMethod::kUniform && recompute.layers == 1;
  if (plain && partial.empty()) return "full";
  return "{granularity: full, method: " + plan::to_string(recompute.method) +
         ", layers: " + std::to_string(recompute.layers) + partial + "}";
}

namespace {

/// Of micro-batches that recompute all that the plan recomputes.
std::string words_for(const Recompute& recompute) {
  const plan::RecomputeModules& modules = recompute.modules;
  switch (recompute.granularity) {
    case RecomputeGranularity::kNone:
      return "none";
    case RecomputeGranularity::kSelective:
      if (modules.core_attention && !modules.mlp && !modules.norm && !modules.activation) return "selective";
      return joined(plan::module_names(modules), "+");
    case RecomputeGranularity::kOperators:
      return "operators";
    case RecomputeGranularity::kFull:
      break;
  }
  if (recompute.method == RecomputeMethod::kBlock) return "block " + std::to_string(recompute.layers);
  return recompute.layers == 1 ? "full" : "full/" + std::to_string(recompute.layers);
}

}  // namespace

std::string to_string(const Recompute& recompute) {
  std::string words = words_for(recompute);
  if (recompute.partial_micro_batches > 0)
    words += " less " + std::to_string(recompute.partial_micro_batches) + " micro-batches";
  if (recompute.partial_layers > 0)
    words += " but for " + std::to_string(recompute.partial_layers) + " layers";
  return words;
}

bool simpler(const ParallelPlan& a, const ParallelPlan& b) {
  const auto key = [](const ParallelPlan& p) {
    return std::tuple(p.gpus, p.tensor_parallel, p.context_parallel, p.pipeline_parallel, p.expert_parallel,
                      p.virtual_pipeline, p.micro_batch_size, p.schedule != plan::ScheduleKind::kOneFOneB,
                      p.schedule, key_of(p.recompute), p.sharding, p.sequence_parallel);
  };
  return key(a) < key(b);
}

}  // namespace trainsim::search
