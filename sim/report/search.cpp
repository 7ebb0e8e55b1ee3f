// SPDX-License-Identifier: Apache-2.0
#include "sim/report/search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/report/format.hpp"
#include "sim/search/candidate.hpp"

namespace trainsim::report {

namespace {

/// Causes that an explanation names at most, and the share of the step time that one must make up to be
/// named.
constexpr std::size_t kMostCauses = 3;
constexpr double kSmallShare = 0.001;

}  // namespace

const char* to_string(Objective objective) {
  switch (objective) {
    case Objective::kStepTime:
      return "step_time";
    case Objective::kCost:
      return "cost";
    case Objective::kGpus:
      break;
  }
  return "gpus";
}

PlanResult plan_result(const Summary& summary) {
  PlanResult result;
  result.plan = summary.plan;
  result.step_time = summary.step_time;
  result.tokens_per_second = summary.tokens_per_second;
  result.mfu = summary.mfu;
  result.bubble_ratio = summary.bubble_ratio;
  result.scaling_efficiency = summary.scaling_efficiency;
  result.peak_memory = summary.peak_memory;
  result.peak_reserved = summary.peak_reserved;
  result.headroom = summary.memory_headroom;
  result.verdict = summary.verdict;
  result.breakdown = summary.breakdown;
  return result;
}

double gpu_hours(std::int64_t gpus, Seconds step_time) {
  return static_cast<double>(gpus) * step_time / kSecondsPerHour;
}

double gpu_hours(const PlanResult& result) {
  return gpu_hours(result.plan.gpus, result.step_time);
}

std::string moved_causes(const std::array<Seconds, program::kCauses>& from,
                         const std::array<Seconds, program::kCauses>& to, Seconds step_time) {
  std::array<std::size_t, program::kCauses> causes{};
  std::iota(causes.begin(), causes.end(), std::size_t{0});
  const auto change = [&](std::size_t c) { return to[c] - from[c]; };
  std::stable_sort(causes.begin(), causes.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(change(a)) > std::abs(change(b)); });
  std::string text;
  for (std::size_t i = 0; i < kMostCauses; ++i) {
    const Seconds moved = change(causes[i]);
    if (std::abs(moved) < kSmallShare * step_time) break;
    if (!text.empty()) text += ", ";
    text += words(program::to_string(static_cast<program::Cause>(causes[i])));
    text.append(" ").append(duration(std::abs(moved))).append(moved > 0 ? " more" : " less");
  }
  return text;
}

std::string explain_difference(const PlanResult& from, const PlanResult& to) {
  std::string text;
  if (from.plan.gpus != to.plan.gpus) {
    text = std::to_string(to.plan.gpus) + " GPUs and a step of " + duration(to.step_time) + " against " +
           std::to_string(from.plan.gpus) + " and " + duration(from.step_time);
  }
  const bool as_fast = std::abs(to.step_time - from.step_time) < kSmallShare * from.step_time;
  // Causes that make up for each other explain nothing.
  const std::string moved = as_fast ? "" : moved_causes(from.breakdown, to.breakdown, from.step_time);
  if (!text.empty() && !moved.empty()) text += ": ";
  text += moved;
  if (!text.empty()) return text;
  const Bytes memory = to.peak_memory - from.peak_memory;
  if (memory == 0) return "as fast within " + percent(kSmallShare) + ", with as much memory";
  return "as fast within " + percent(kSmallShare) + ", with " + gib(std::abs(memory)) +
         (memory > 0 ? " more" : " less") + " memory";
}

void compare_with_best(SearchReport& report) {
  if (report.plans.empty()) return;
  const PlanResult best = report.plans.front();
  const auto value = [&report](const PlanResult& result) {
    return report.objective == Objective::kStepTime ? result.step_time : gpu_hours(result);
  };
  const auto compare = [&](PlanResult& result) {
    result.relative = value(result) / value(best);
    result.why = explain_difference(best, result);
  };
  std::for_each(report.plans.begin() + 1, report.plans.end(), compare);
  if (report.own) compare(*report.own);
}

std::string plan_label(const plan::ParallelPlan& plan) {
  std::string text = "TP" + std::to_string(plan.tensor_parallel) + (plan.sequence_parallel ? "+SP" : "") +
                     " PP" + std::to_string(plan.pipeline_parallel);
  if (plan.virtual_pipeline > 1) text += " VPP" + std::to_string(plan.virtual_pipeline);
  text += (plan.context_parallel > 1 ? " CP" + std::to_string(plan.context_parallel) : "") + " DP" +
          std::to_string(plan.data_parallel) +
          (plan.expert_parallel > 1 ? " EP" + std::to_string(plan.expert_parallel) : "") + ", micro-batch " +
          std::to_string(plan.micro_batch_size);
  if (plan.pipeline_parallel > 1) text += ", " + plan::to_string(plan.schedule);
  return text + ", recompute " + search::to_string(plan.recompute) + ", sharding " +
         plan::to_string(plan.sharding);
}

std::string verdict_on(const NeighbourReport& report) {
  const auto fits = [](const NeighbourResult& each) { return each.result.verdict != Verdict::kDoesNotFit; };
  const auto best = std::find_if(report.neighbours.begin(), report.neighbours.end(), fits);
  const PlanResult& own = report.own;
  const bool own_fits = own.verdict != Verdict::kDoesNotFit;
  if (best == report.neighbours.end())
    return own_fits ? "no neighbour fits into memory; yours does"
                    : "neither yours nor a neighbour fits into memory";
  const PlanResult& other = best->result;
  const Bytes memory = other.peak_memory - own.peak_memory;
  const std::string needs = memory == 0
                                ? "which needs as much memory"
                                : "which needs " + gib(std::abs(memory)) + (memory > 0 ? " more" : " less");
  if (!own_fits) {
    const std::string misfit =
        own.headroom < 0 ? gib(-own.headroom) + " too much" : "too much for the memory of its hosts";
    return "yours does not fit (" + misfit + "); the fastest neighbour that does is " +
           plan_label(other.plan) + " (" + best->change + ") with " + duration(other.step_time) + ", " +
           needs;
  }
  // Below a thousandth the choice is one of taste.
  const double slower = own.step_time / other.step_time - 1.0;
  if (slower < kSmallShare) {
    return "yours is " + percent(std::max(0.0, 1.0 - own.step_time / other.step_time)) +
           " faster than the best neighbour, " + plan_label(other.plan) + " (" + best->change + "), " + needs;
  }
  return "yours is " + percent(slower) + " slower than " + plan_label(other.plan) + " (" + best->change +
         "), " + needs;
}

}  // namespace trainsim::report
