// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/memory_changes.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/cli/simulate.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;

/// How many changes are tried together when none alone is enough, how many of the most effective take part,
/// and how many of those that fit are simulated.
constexpr int kMostTogether = 3;
constexpr std::size_t kMostCombined = 8;
constexpr std::size_t kMostTimed = 12;
/// Tokens of a sequence on a rank from which it is worth sharing; shorter ones usually fit otherwise.
constexpr std::int64_t kLongSequence = 16'384;

/// The same sharding with what its framework can offload; empty where that is nothing, or happens already.
std::string with_offload(const plan::ParallelPlan& plan) {
  if (plan.sharding == plan::Sharding::kNone || plan.is_hybrid() || plan.offload.active()) return "";
  const bool all = plan.sharding == plan::Sharding::kZero3 && plan.framework != plan::Framework::kMegatron;
  if (!all && plan.framework == plan::Framework::kFsdp) return "";
  return "plan.sharding={stage: " + std::to_string(static_cast<int>(plan.sharding)) +
         ", offload: {optimizer: cpu" + (all ? ", parameters: cpu}}" : "}}");
}

/// Changes that are worth a try, as lists of overrides.
std::vector<Overrides> candidates(const Experiment& experiment) {
  const plan::ParallelPlan& plan = experiment.plan;
  const model::Experts& experts = experiment.model.experts;
  std::vector<Overrides> list;
  if (experts.active()) list.push_back({assignment("plan.expert_parallel", 2 * plan.expert_parallel)});
  using plan::RecomputeGranularity;
  if (plan.recompute.granularity != RecomputeGranularity::kFull) {
    if (plan.recompute.granularity == RecomputeGranularity::kNone)
      list.push_back({"plan.recompute=selective"});
    list.push_back({"plan.recompute={granularity: selective, modules: [core_attn, layernorm, activation]}"});
    list.push_back({"plan.recompute={granularity: selective, modules: [core_attn, mlp]}"});
    if (experts.active())
      list.push_back({"plan.recompute={granularity: selective, modules: [core_attn, moe]}"});
    list.push_back({"plan.recompute=full"});
  }
  if (plan.tensor_parallel > 1 && !plan.sequence_parallel) list.push_back({"plan.sequence_parallel=true"});
  if (plan.data_context_ranks() > 1) {
    if (plan.sharding == plan::Sharding::kNone) list.push_back({"plan.sharding=zero1"});
    if (plan.sharding != plan::Sharding::kZero3) list.push_back({"plan.sharding=zero3"});
  }
  if (const std::string offload = with_offload(plan); !offload.empty()) list.push_back({offload});
  // The last layer's activations are needed at once.
  if (experiment.cluster.host && !plan.uses_host() && experiment.model.num_layers > 1) {
    list.push_back(
        {"plan.activation_offload={layers: " + std::to_string(experiment.model.num_layers - 1) + "}"});
  }
  if (plan.micro_batch_size % 2 == 0) {
    list.push_back({assignment("plan.micro_batch_size", plan.micro_batch_size / 2),
                    assignment("plan.global_batch_size", plan.global_batch_size)});
  }
  // Of a long sequence's activations and logits every further rank takes a share; replicas take none.
  const bool shares = experiment.model.attention != model::Attention::kStandard &&
                      experiment.model.sequence_length / plan.context_parallel >= kLongSequence;
  if (plan.data_parallel % 2 == 0 && shares) {
    list.push_back({assignment("plan.context_parallel", 2 * plan.context_parallel),
                    assignment("plan.data_parallel", plan.data_parallel / 2),
                    assignment("plan.global_batch_size", plan.global_batch_size)});
  }
  if (plan.data_parallel % 2 == 0) {
    list.push_back(with_split(plan, 2 * plan.tensor_parallel, plan.pipeline_parallel));
    list.push_back(with_split(plan, plan.tensor_parallel, 2 * plan.pipeline_parallel));
  }
  if (plan.optimizer == plan::Optimizer::kAdam) list.push_back({"plan.optimizer=adam-8bit"});
  if (plan.gradient_bytes == 4 && plan.precision == plan::Precision::kBf16)
    list.push_back({"plan.gradient_dtype=bf16"});
  if (!plan.expandable_segments) list.push_back({"memory.expandable_segments=true"});
  return list;
}

/// A change with what it does to memory; its time is worked out only if it is shown.
struct Candidate {
  Overrides overrides;
  Experiment experiment;
  MemoryEstimate memory;
  Bytes headroom() const { return available_memory(experiment) - memory.peak; }
};

std::optional<Candidate> candidate_of(const Subject& subject, const Overrides& change) {
  std::optional<Experiment> experiment = variant(subject, change);
  if (!experiment) return std::nullopt;
  const MemoryEstimate memory = estimate_memory(*experiment);
  Candidate candidate{change, std::move(*experiment), memory};
  // What only the host has no room for is no step towards a plan that fits.
  if (!memory.fits() && candidate.headroom() >= 0) return std::nullopt;
  return candidate;
}

/// Whether two changes set the same key.
bool collide(const Overrides& a, const Overrides& b) {
  const auto key = [](const std::string& text) { return text.substr(0, text.find('=')); };
  return std::any_of(a.begin(), a.end(), [&](const std::string& one) {
    return std::any_of(b.begin(), b.end(), [&](const std::string& other) { return key(one) == key(other); });
  });
}

bool any_fits(const std::vector<Candidate>& list) {
  return std::any_of(list.begin(), list.end(), [](const Candidate& each) { return each.memory.fits(); });
}

/// Most effective first.
void sort_by_memory(std::vector<Candidate>& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Candidate& a, const Candidate& b) { return a.headroom() > b.headroom(); });
}

/// Each of `list` together with one of the most effective `single` changes.
std::vector<Candidate> combined(const Subject& subject, const std::vector<Candidate>& list,
                                const std::vector<Candidate>& single) {
  std::vector<Candidate> result;
  std::set<Overrides> seen;
  for (std::size_t i = 0; i < std::min(kMostCombined, list.size()); ++i) {
    for (std::size_t j = 0; j < std::min(kMostCombined, single.size()); ++j) {
      if (collide(list[i].overrides, single[j].overrides)) continue;
      const Overrides both = joined(list[i].overrides, single[j].overrides);
      Overrides sorted = both;
      std::sort(sorted.begin(), sorted.end());
      if (!seen.insert(sorted).second) continue;
      if (auto candidate = candidate_of(subject, both)) result.push_back(std::move(*candidate));
    }
  }
  sort_by_memory(result);
  return result;
}

report::MemoryChange change_of(const Candidate& candidate, Seconds base) {
  report::MemoryChange change;
  change.overrides = candidate.overrides;
  change.peak_memory = candidate.memory.peak;
  change.peak_reserved = candidate.memory.reserved;
  change.headroom = candidate.headroom();
  change.verdict = candidate.memory.verdict;
  change.relative_step_time = ideal_step_time(candidate.experiment) / base;
  return change;
}

}  // namespace

std::vector<report::MemoryChange> memory_changes(const Subject& subject, const Experiment& experiment,
                                                 std::size_t most) {
  std::vector<Candidate> single;
  for (const Overrides& change : candidates(experiment)) {
    if (auto candidate = candidate_of(subject, change)) single.push_back(std::move(*candidate));
  }
  sort_by_memory(single);
  std::vector<Candidate> list = single;
  for (int size = 1; size < kMostTogether && !any_fits(list); ++size) {
    std::vector<Candidate> larger = combined(subject, list, single);
    if (larger.empty()) break;
    list = std::move(larger);
  }
  if (any_fits(list)) std::erase_if(list, [](const Candidate& each) { return !each.memory.fits(); });
  if (list.size() > kMostTimed) list.resize(kMostTimed);
  const Seconds base = ideal_step_time(experiment);
  std::vector<report::MemoryChange> changes(list.size());
  std::transform(list.begin(), list.end(), changes.begin(),
                 [base](const Candidate& candidate) { return change_of(candidate, base); });
  if (any_fits(list)) {
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return a.relative_step_time < b.relative_step_time;
    });
  }
  if (changes.size() > most) changes.resize(most);
  return changes;
}

}  // namespace trainsim::cli
