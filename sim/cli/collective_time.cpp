// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/collective_time.hpp"

#include "sim/engine/flow_time.hpp"
#include "sim/folding/fold.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::cli {

CollectiveBench::CollectiveBench(const hardware::ClusterSpec& cluster, std::int64_t gpus) {
  plan::ParallelPlan plan;
  plan.gpus = gpus;
  plan.tensor_parallel = gpus;
  job_ = folding::build_job(plan, cluster, false, {program::Program{}}, {});
}

Seconds CollectiveBench::time(program::CollectiveOp op, double bytes) const {
  const std::int32_t group = job_.ranks.front().groups[static_cast<std::size_t>(program::GroupKind::kTensor)];
  return engine::lone_collective_time(job_, job_.groups[static_cast<std::size_t>(group)], op, bytes);
}

}  // namespace trainsim::cli
