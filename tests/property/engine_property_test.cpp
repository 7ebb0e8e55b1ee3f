// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/engine/executor.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim {
namespace {

/// A legal plan on at most four nodes and a cluster with random sharing, both small.
struct Case {
  hardware::ClusterSpec cluster = tests::round_cluster();
  plan::ParallelPlan plan;
};

Case random_case() {
  const auto tensor = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  const auto pipeline = *rc::gen::element<std::int64_t>(1, 2, 4);
  const auto chunks = pipeline > 1 ? *rc::gen::element<std::int64_t>(1, 2) : 1;
  Case random;
  random.plan = tests::small_plan(32, tensor, pipeline, chunks);
  const auto stage = *rc::gen::inRange(0, pipeline > 1 ? 2 : 4);
  random.plan.sharding = static_cast<plan::Sharding>(stage);
  random.plan.overlap_gradient_reduction = *rc::gen::arbitrary<bool>();
  random.plan.overlap_point_to_point = *rc::gen::arbitrary<bool>();
  random.plan.sequence_parallel = tensor > 1 && *rc::gen::arbitrary<bool>();
  random.plan.recompute.granularity =
      *rc::gen::element(plan::RecomputeGranularity::kNone, plan::RecomputeGranularity::kSelective,
                        plan::RecomputeGranularity::kFull);
  random.cluster.nics_per_node = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  random.cluster.oversubscription = *rc::gen::element(1.0, 2.0, 7.0);
  random.cluster.fabric =
      *rc::gen::element(hardware::FabricKind::kFatTree, hardware::FabricKind::kRailOptimized);
  return random;
}

std::vector<double> outcome(const program::Timeline& timeline) {
  Bytes peak = 0;
  for (const program::RankTimeline& rank : timeline.ranks) peak = std::max(peak, rank.peak_memory);
  return {timeline.step_time, static_cast<double>(peak)};
}

std::vector<double> on_simgrid(const Case& random, bool fold) {
  return tests::in_child([&] {
    const program::Job job = tests::make_job(tests::small_gpt(), random.cluster, random.plan, {fold, false});
    return outcome(engine::make_simgrid_executor()->run(job));
  });
}

std::vector<double> ideal(const Case& random, bool free_communication) {
  const program::Job job =
      tests::make_job(tests::small_gpt(), random.cluster, random.plan, {true, free_communication});
  return outcome(engine::make_ideal_executor()->run(job));
}

RC_GTEST_PROP(Engine, FoldedEqualsUnfolded, ()) {
  const Case random = random_case();
  const std::vector<double> folded = on_simgrid(random, true);
  const std::vector<double> unfolded = on_simgrid(random, false);
  RC_ASSERT(std::abs(folded.at(0) / unfolded.at(0) - 1.0) < 1e-9);
  RC_ASSERT(folded.at(1) == unfolded.at(1));
}

RC_GTEST_PROP(Engine, ContentionNeverSpeedsUpAStep, ()) {
  const Case random = random_case();
  const double contended = on_simgrid(random, true).at(0);
  const double alone = ideal(random, false).at(0);
  const double free = ideal(random, true).at(0);
  RC_ASSERT(contended >= alone * (1 - 1e-9));
  RC_ASSERT(alone >= free * (1 - 1e-9));
}

RC_GTEST_PROP(Engine, ASlowerGpuNeverSpeedsUpAStep, ()) {
  Case random = random_case();
  const double before = ideal(random, false).at(0);
  random.cluster.slow_gpus = {{*rc::gen::inRange<std::int64_t>(0, 32), 1.7}};
  RC_ASSERT(ideal(random, false).at(0) >= before * (1 - 1e-9));
}

RC_GTEST_PROP(Engine, EveryActivationIsFreed, ()) {
  const Case random = random_case();
  const program::Job job = tests::make_job(tests::small_gpt(), random.cluster, random.plan);
  for (const program::RankTimeline& rank : engine::make_ideal_executor()->run(job).ranks) {
    for (int c = 0; c < program::kMemoryCategories; ++c) {
      const auto category = static_cast<program::MemoryCategory>(c);
      const bool state = category == program::MemoryCategory::kParameters ||
                         category == program::MemoryCategory::kGradients ||
                         category == program::MemoryCategory::kOptimizerState;
      RC_ASSERT(state == (rank.memory_at_end[static_cast<std::size_t>(c)] > 0));
    }
  }
}

}  // namespace
}  // namespace trainsim
