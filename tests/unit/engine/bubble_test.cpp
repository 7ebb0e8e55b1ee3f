// SPDX-License-Identifier: Apache-2.0
// Bubble ratio of equal stages with free communication against the schedules' closed forms, through the whole
// road: schedule, lowering, folding, executor, summary.
#include <gtest/gtest.h>

#include "sim/engine/executor.hpp"
#include "sim/report/summary.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim {
namespace {

using plan::ScheduleKind;

struct Shape {
  std::int64_t stages;
  std::int64_t micro_batches;
  std::int64_t chunks;
};

plan::ParallelPlan plan_of(ScheduleKind kind, const Shape& shape) {
  plan::ParallelPlan plan = tests::small_plan(shape.stages, 1, shape.stages, shape.chunks);
  plan.schedule = kind;
  plan.global_batch_size = shape.micro_batches;
  // Equal stages: every micro-batch takes 3 ms forward and 5 ms backward on each.
  plan.profile = {{3e-3, 5e-3}};
  return plan;
}

report::Summary simulate(const plan::ParallelPlan& plan, engine::Executor& executor) {
  model::ModelSpec model = tests::small_gpt();
  model.num_layers = plan.virtual_stages();
  const hardware::ClusterSpec cluster = tests::round_cluster();
  const program::Job job = tests::make_job(model, cluster, plan, {true, true});
  const program::Timeline timeline = executor.run(job);
  return report::summarize({"",
                            "",
                            model,
                            cluster,
                            plan,
                            job,
                            timeline,
                            std::vector<memory::Profile>(job.programs.size()),
                            std::vector<std::optional<memory::Reservation>>(job.programs.size()),
                            {},
                            {},
                            "free",
                            1e12,
                            1.0,
                            schedule::bubble_ratio_theory(plan),
                            {},
                            0});
}

double expected(const Shape& shape) {
  const auto p = static_cast<double>(shape.stages);
  return (p - 1) / (static_cast<double>(shape.chunks * shape.micro_batches) + p - 1);
}

std::vector<std::pair<ScheduleKind, Shape>> all_shapes() {
  std::vector<std::pair<ScheduleKind, Shape>> shapes;
  for (const std::int64_t p : {2, 4, 8, 16}) {
    for (std::int64_t m = 1; m <= 64; ++m) {
      shapes.push_back({ScheduleKind::kGpipe, {p, m, 1}});
      shapes.push_back({ScheduleKind::kOneFOneB, {p, m, 1}});
      for (std::int64_t v = 2; v <= 4 && m % p == 0; ++v)
        shapes.push_back({ScheduleKind::kInterleaved, {p, m, v}});
    }
  }
  return shapes;
}

TEST(Bubble, ClosedFormsOnTheIdealExecutor) {
  for (const auto& [kind, shape] : all_shapes()) {
    const report::Summary summary = simulate(plan_of(kind, shape), *engine::make_ideal_executor());
    ASSERT_NEAR(summary.bubble_ratio, expected(shape), 1e-9)
        << plan::to_string(kind) << " p=" << shape.stages << " m=" << shape.micro_batches
        << " v=" << shape.chunks;
    ASSERT_NEAR(summary.bubble_ratio_theory.value(), expected(shape), 1e-12);
  }
}

TEST(Bubble, ClosedFormsOnSimgrid) {
  for (const auto& [kind, shape] : all_shapes()) {
    if (shape.micro_batches % 4 != 0 && shape.micro_batches > 3) continue;
    const plan::ParallelPlan plan = plan_of(kind, shape);
    const std::vector<double> ratio = tests::in_child([&plan] {
      return std::vector<double>{simulate(plan, *engine::make_simgrid_executor()).bubble_ratio};
    });
    ASSERT_NEAR(ratio.at(0), expected(shape), 1e-9) << plan::to_string(kind) << " p=" << shape.stages
                                                    << " m=" << shape.micro_batches << " v=" << shape.chunks;
  }
}

/// 3/11, which the texts that divide by the ideal time quote as 3/8.
TEST(Bubble, FourStagesEightMicroBatches) {
  const report::Summary summary =
      simulate(plan_of(ScheduleKind::kOneFOneB, {4, 8, 1}), *engine::make_ideal_executor());
  EXPECT_NEAR(summary.bubble_ratio, 3.0 / 11.0, 1e-12);
  // Fill, steady state and drain: 3 slots of 8 ms idle on every stage, all of it booked as bubble.
  EXPECT_NEAR(summary.breakdown[static_cast<std::size_t>(program::Cause::kBubble)], 24e-3, 1e-12);
}

}  // namespace
}  // namespace trainsim
