// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include "sim/engine/executor.hpp"
#include "sim/folding/fold.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::engine {
namespace {

/// One all-reduce, all-gather or reduce-scatter over all GPUs of a cluster, alone on the network.
Seconds time_of(const hardware::ClusterSpec& cluster, std::int64_t gpus, program::CollectiveOp op,
                double bytes, bool steps) {
  return tests::in_child([&] {
           folding::FoldOptions fold;
           fold.fold = false;
           fold.separate_flows = steps;
           const program::Job job = folding::build_job(tests::one_group(gpus), cluster, false,
                                                       {tests::lone_collective(op, bytes)}, fold);
           ExecutorOptions options;
           options.closed_form_collectives = false;
           options.ring_steps = steps;
           return std::vector<double>{make_simgrid_executor(options)->run(job).step_time};
         })
      .at(0);
}

hardware::ClusterSpec cluster() {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.forced_algorithm = Algorithm::kRing;
  return cluster;
}

/// 2 (P - 1) / P N / B + base + 2 (P - 1) latencies: in a node both agree with it to rounding.
TEST(RingSteps, AgreeWithTheClosedFormInANode) {
  for (const std::int64_t gpus : {2, 3, 5, 8}) {
    for (const double bytes : {1 << 20, 1 << 26}) {
      const double p = static_cast<double>(gpus);
      const double expected = 2 * (p - 1) / p * bytes / 100e9 + 5e-6 + 2 * (p - 1) * 1e-6;
      const double flow = time_of(cluster(), gpus, program::CollectiveOp::kAllReduce, bytes, false);
      const double step = time_of(cluster(), gpus, program::CollectiveOp::kAllReduce, bytes, true);
      EXPECT_NEAR(flow / expected, 1.0, 1e-6) << gpus << " " << bytes;
      EXPECT_NEAR(step / expected, 1.0, 1e-5) << gpus << " " << bytes;
    }
  }
}

/// From 1 MiB up, on 1 to 8 nodes, with NICs from half to a twentieth of NVLink's rate.
TEST(RingSteps, AgreeWithFlowsAcrossNodes) {
  using program::CollectiveOp;
  for (const std::int64_t nodes : {1, 2, 4, 8}) {
    for (const std::int64_t members : {2, 3, 8}) {
      for (const double ratio : {2, 10, 20}) {
        hardware::ClusterSpec spec = cluster();
        spec.gpus_per_node = spec.nics_per_node = members;
        spec.nic.bandwidth = spec.intra_node.bandwidth / ratio;
        for (const CollectiveOp op :
             {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter}) {
          for (const double bytes : {1 << 20, 1 << 24}) {
            const double flow = time_of(spec, nodes * members, op, bytes, false);
            const double step = time_of(spec, nodes * members, op, bytes, true);
            EXPECT_NEAR(step / flow, 1.0, 0.03)
                << nodes << " x " << members << " " << ratio << " " << to_string(op) << " " << bytes;
          }
        }
      }
    }
  }
}

/// In single steps P parts circulate over P edges. A step takes as long as the slowest edge sends, or as a
/// part needs per edge on its way round, latencies included, whichever is more (the largest cycle mean of a
/// max-plus recursion); the last part's latency follows. With two GPUs in a node no two flows share a link.
TEST(RingSteps, TakeTheLargestCycleMeanAcrossNodes) {
  hardware::ClusterSpec pairs = cluster();
  pairs.gpus_per_node = pairs.nics_per_node = 2;
  pairs.fabric.switch_latency = 0;
  for (const std::int64_t gpus : {4, 8, 16, 32}) {
    for (const double bytes : {1 << 20, 1 << 22, 1 << 24, 1 << 28}) {
      const auto members = static_cast<double>(gpus);
      const double part = bytes / 2 / members;
      const double inside = part / 100e9;
      const double between = part / 10e9;
      const double round = (inside + 1e-6 + between + 3e-6) / 2;
      const double expected = 5e-6 + 2 * (members - 1) * std::max(between, round) + 3e-6;
      const double step = time_of(pairs, gpus, program::CollectiveOp::kAllReduce, bytes, true);
      EXPECT_NEAR(step / expected, 1.0, 0.02) << gpus << " " << bytes;
    }
  }
}

/// A whole training step with contention: several rings through one NIC, pipeline transfers beside them.
TEST(RingSteps, AgreeWithFlowsInATrainingStep) {
  hardware::ClusterSpec shared = cluster();
  shared.nics_per_node = 2;
  const plan::ParallelPlan plan = tests::small_plan(16, 2, 2, 1);
  const auto step_time = [&](bool steps) {
    return tests::in_child([&] {
             const schedule::Schedule schedule = schedule::build(plan);
             folding::FoldOptions fold;
             fold.fold = false;
             fold.separate_flows = steps;
             const program::Job job = folding::build_job(
                 plan, shared, true, lowering::lower(tests::small_gpt(), plan, shared, schedule), fold);
             ExecutorOptions options;
             options.ring_steps = steps;
             return std::vector<double>{make_simgrid_executor(options)->run(job).step_time};
           })
        .at(0);
  };
  EXPECT_NEAR(step_time(true) / step_time(false), 1.0, 0.03);
}

}  // namespace
}  // namespace trainsim::engine
