// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/executor.hpp"
#include "sim/engine/traffic.hpp"
#include "sim/report/summary.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::tests {

using plan::ParallelPlan;
using program::Cause;
using program::MemoryCategory;
using report::Summary;

/// A job and its timeline, written by hand or simulated, with all that a summary refers to.
struct Outcome {
  model::ModelSpec model;
  hardware::ClusterSpec cluster;
  ParallelPlan plan;
  program::Job job;
  program::Timeline timeline;
  std::vector<memory::Profile> memory = {};
  std::vector<std::optional<memory::Reservation>> reserved = {};
  FlopsPerSecond peak = 0;
  Seconds single_gpu_time = 0;
  std::string name = "run";
  std::optional<Seconds> uncontended = std::nullopt;

  Summary summary() const {
    return report::summarize({name,
                              "what it is about",
                              model,
                              cluster,
                              plan,
                              job,
                              timeline,
                              memory,
                              reserved,
                              engine::count_traffic(job),
                              uncontended,
                              "ideal",
                              peak,
                              single_gpu_time,
                              schedule::bubble_ratio_theory(plan),
                              {"a warning"},
                              0,
                              0.5});
  }
};

inline Outcome simulated(const model::ModelSpec& model, const ParallelPlan& plan,
                         bool free_communication = false) {
  Outcome outcome{model, tests::round_cluster(), plan, {}, {}};
  outcome.job = tests::make_job(model, outcome.cluster, plan, {true, free_communication});
  outcome.timeline = engine::make_ideal_executor()->run(outcome.job);
  for (const program::Program& program : outcome.job.programs) {
    outcome.memory.push_back(memory::replay(program));
    outcome.reserved.emplace_back(
        memory::Reservation{outcome.memory.back().peak, outcome.memory.back().peak, 0});
  }
  outcome.peak = lowering::peak_flops(outcome.cluster.gpu, plan);
  outcome.single_gpu_time = lowering::single_gpu_time(model, plan, outcome.cluster.gpu);
  return outcome;
}

inline program::RankTimeline rank_timeline(Seconds first, Seconds last, Seconds busy,
                                           const std::vector<std::pair<Cause, Seconds>>& causes) {
  program::RankTimeline rank;
  rank.first_slot = first;
  rank.last_slot = last;
  rank.busy = busy;
  for (const auto& [cause, seconds] : causes) rank.by_cause[static_cast<std::size_t>(cause)] = seconds;
  return rank;
}

/// A step of 12 s on two stages, each of two data-parallel ranks, B = 8 sequences of 256 tokens.
inline Outcome written_by_hand() {
  Outcome outcome{gpt({2}), tests::round_cluster(), split_plan({1, 2, 1, 2}, 4), {}, {}};
  outcome.peak = 10e12;
  outcome.single_gpu_time = 24;
  outcome.job.world_size = 4;
  outcome.job.folded = true;
  outcome.job.programs.resize(2);
  outcome.job.programs[0].flops = 100e12;
  outcome.job.programs[1].flops = 50e12;
  outcome.job.programs[1].slots = {{'F', 0, 0}, {'B', 3, 1}};
  outcome.job.ranks.resize(2);
  for (std::uint32_t stage : {0U, 1U}) {
    outcome.job.ranks[stage].stage = stage;
    outcome.job.ranks[stage].program = stage;
    outcome.job.ranks[stage].id = 2 * stage;
    outcome.job.ranks[stage].represents = 2;
  }
  outcome.timeline.step_time = 12;
  outcome.timeline.ranks = {
      rank_timeline(
          0, 8, 6,
          {{Cause::kForward, 2}, {Cause::kBackward, 4}, {Cause::kBubble, 2}, {Cause::kImbalance, 4}}),
      rank_timeline(
          2, 10, 8,
          {{Cause::kForward, 3}, {Cause::kBackward, 5}, {Cause::kBubble, 2}, {Cause::kOptimizer, 2}})};
  outcome.memory.resize(2);
  outcome.memory[0].peak = Bytes{20} << 30;
  memory::Profile& fullest = outcome.memory[1];
  fullest.peak = Bytes{30} << 30;
  fullest.peak_slot = 1;
  fullest.peak_share = 0.5;
  fullest.at_peak[static_cast<std::size_t>(MemoryCategory::kActivations)] = fullest.peak;
  outcome.reserved = {std::nullopt, memory::Reservation{fullest.peak, Bytes{33} << 30, 2}};
  return outcome;
}

/// Relative tolerance of sums in a different order.
inline constexpr double kTight = 1e-12;

/// Plans that use every kind of communication.
inline std::vector<ParallelPlan> varied_plans() {
  std::vector<ParallelPlan> plans = {split_plan({1, 1, 1, 1}, 4), split_plan({4, 1, 1, 2}, 2),
                                     split_plan({1, 4, 1, 2}, 8), split_plan({2, 2, 2, 4}, 4)};
  plans[1].sequence_parallel = true;
  plans[1].sharding = plan::Sharding::kZero1;
  plans[2].recompute.granularity = plan::RecomputeGranularity::kFull;
  plans[3].overlap_point_to_point = true;
  return plans;
}

}  // namespace trainsim::tests
