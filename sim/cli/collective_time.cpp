// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/collective_time.hpp"

#include "sim/engine/flow_time.hpp"
#include "sim/folding/fold.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::cli {

namespace {

constexpr std::int64_t kMostMembers = 16384;
/// There are as many flows as the square of this.
constexpr std::int64_t kMostInPairs = 512;

}  // namespace

std::string collective_fault(const hardware::ClusterSpec& cluster, std::int64_t gpus,
                             program::Pattern pattern) {
  const std::string given = std::to_string(gpus) + " GPUs: ";
  const std::string node = std::to_string(cluster.gpus_per_node);
  if (gpus < 2) return given + "a collective needs 2 at least";
  const std::int64_t most = pattern == program::Pattern::kPairs ? kMostInPairs : kMostMembers;
  if (gpus > most) return given + "at most " + std::to_string(most) + " are simulated";
  if (gpus <= cluster.gpus_per_node) return "";
  if (gpus % cluster.gpus_per_node != 0) return given + "more than a node needs whole nodes of " + node;
  if (cluster.nics_per_node == 0) return given + "the cluster has no network beyond one node of " + node;
  if (cluster.max_gpus > 0 && gpus > cluster.max_gpus)
    return given + "the cluster has " + std::to_string(cluster.max_gpus);
  const Problems problems = plan::check_cluster(cluster, gpus);
  return problems.empty() ? "" : problems.front().field + ": " + problems.front().message;
}

CollectiveBench::CollectiveBench(const hardware::ClusterSpec& cluster, std::int64_t gpus,
                                 program::Pattern pattern) {
  plan::ParallelPlan plan;
  plan.gpus = gpus;
  plan.tensor_parallel = gpus;
  folding::FoldOptions options;
  options.tensor_pattern = pattern;
  job_ = folding::build_job(plan, cluster, false, {program::Program{}}, options);
}

const program::Group& CollectiveBench::group() const {
  const auto tensor = static_cast<std::size_t>(program::GroupKind::kTensor);
  return job_.groups[static_cast<std::size_t>(job_.ranks.front().groups[tensor])];
}

Seconds CollectiveBench::time(program::CollectiveOp op, double bytes) const {
  return engine::lone_collective_time(job_, group(), cost(op, bytes));
}

program::CollectiveCost CollectiveBench::cost(program::CollectiveOp op, double bytes) const {
  return program::collective_cost(group(), op, bytes, engine::member_links(job_, group()));
}

}  // namespace trainsim::cli
