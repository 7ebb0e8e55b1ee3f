// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/candidate_pool.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace trainsim::cli {

namespace {

using search::Candidate;

bool same_block(const PooledPlan& a, const PooledPlan& b) {
  const auto key = [](const PooledPlan& plan) {
    const Candidate& c = plan.candidate;
    return std::tuple(plan.base, c.tensor_parallel, c.pipeline_parallel, c.virtual_pipeline, c.schedule,
                      c.sequence_parallel, c.sharding, c.context_parallel, c.expert_parallel);
  };
  return key(a) == key(b);
}

}  // namespace

CandidatePool::CandidatePool(PlanBase own, const search::Space& space, const std::vector<std::int64_t>& gpus,
                             bool take_own_plan, report::SearchReport& report)
    : own_(std::move(own)) {
  std::map<std::string, report::LeftOut> illegal;
  for (const std::int64_t count : gpus) {
    bases_.push_back(own_.base);
    bases_.back().plan.gpus = count;
    const search::Enumeration found = search::enumerate(space, bases_.back());
    report.considered += found.considered;
    for (const Candidate& candidate : found.legal) plans_.push_back({bases_.size() - 1, candidate});
    for (const search::Illegal& each : found.illegal) {
      report::LeftOut& rule = illegal[each.field];
      if (rule.count == 0) rule.reason = each.field + ": " + each.example;
      rule.count += each.count;
    }
    if (take_own_plan && count == own_.base.plan.gpus) take_own(report);
  }
  report.legal = static_cast<std::int64_t>(plans_.size());
  report.illegal.reserve(illegal.size());
  for (auto& [key, rule] : illegal) report.illegal.push_back(std::move(rule));
  std::stable_sort(report.illegal.begin(), report.illegal.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
}

void CandidatePool::take_own(report::SearchReport& report) {
  const bool listed = std::any_of(plans_.begin(), plans_.end(),
                                  [this](const PooledPlan& plan) { return overrides(plan).empty(); });
  if (listed) return;
  plans_.push_back({bases_.size() - 1, search::candidate_of(own_.base.plan)});
  ++report.considered;
}

std::vector<PlanBlock> CandidatePool::blocks() const {
  std::vector<PlanBlock> list;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    if (i > 0 && same_block(plans_[i - 1], plans_[i])) {
      list.back().end = i + 1;
    } else {
      list.push_back({i, i + 1});
    }
  }
  return list;
}

void CandidatePool::resolve_layers(std::size_t index, std::int64_t layers) {
  plans_[index].candidate.recompute = {
      {plan::RecomputeGranularity::kFull, plan::RecomputeMethod::kBlock, layers}, false};
}

Bytes CandidatePool::available(const PooledPlan& plan) const {
  const search::Base& base = bases_[plan.base];
  return base.cluster.gpu.memory - base.plan.memory_reserve;
}

plan::ParallelPlan CandidatePool::resolved(const PooledPlan& plan) const {
  return search::applied(plan.candidate, bases_[plan.base]);
}

Overrides CandidatePool::overrides(const PooledPlan& plan) const {
  const search::Base& base = bases_[plan.base];
  Overrides list;
  if (base.plan.gpus != own_.base.plan.gpus) list.push_back(search::assignment("gpus", base.plan.gpus));
  return joined(std::move(list), search::overrides_for(plan.candidate, base));
}

config::Experiment CandidatePool::experiment(const PooledPlan& plan) const {
  config::Experiment experiment =
      config::load(own_.subject.name, joined(own_.subject.overrides, overrides(plan)), config::Scope::kStep);
  experiment.jitter = {};
  return experiment;
}

}  // namespace trainsim::cli
