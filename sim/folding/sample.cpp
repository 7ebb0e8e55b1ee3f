// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/sample.hpp"

#include <algorithm>
#include <numeric>

namespace trainsim::folding {

namespace {

/// Replicas whose ranks of a stage hold all experts once.
std::int64_t replicas_per_expert_group(const plan::ParallelPlan& plan) {
  const std::int64_t ranks = plan.expert_tensor() * plan.expert_parallel;
  return ranks / std::gcd(ranks, plan.tensor_parallel * plan.context_parallel);
}

/// Replicas of one stage, and of as many as hold all experts, that fill whole nodes, or 0 when they never do.
std::int64_t replicas_per_block(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan) {
  const std::int64_t ranks = plan.tensor_parallel * plan.context_parallel;
  const std::int64_t node = std::max<std::int64_t>(1, cluster.gpus_per_node / ranks);
  const bool whole_nodes = node * ranks % cluster.gpus_per_node == 0;
  // Ranks that exchange tokens stay together.
  const std::int64_t block = std::lcm(node, replicas_per_expert_group(plan));
  return whole_nodes && plan.data_parallel % block == 0 ? block : 0;
}

/// Nodes of a block that a ring over data- and context-parallel ranks passes through.
std::int64_t ring_nodes_per_block(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan,
                                  std::int64_t block) {
  const std::int64_t tensor = std::min(plan.tensor_parallel, cluster.gpus_per_node);
  return std::max<std::int64_t>(1, block * plan.context_parallel * tensor / cluster.gpus_per_node);
}

}  // namespace

Sample sample_replicas(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan) {
  Sample sample{cluster, plan};
  const std::int64_t block = replicas_per_block(cluster, plan);
  const bool alike = cluster.fabric.is_non_blocking() && cluster.slow_gpus.empty() &&
                     cluster.faults.empty() && plan.order == plan::kTensorDataPipeline && plan.nodes.empty();
  // Groups that hold a copy of sharded state must lie within a block.
  const bool split =
      plan.is_hybrid() && (block == 0 || block * plan.context_parallel % plan.shard_ranks() != 0);
  // Exchanges of tokens over several nodes go from rail to rail.
  const bool exchanges = cluster.fabric.kind == hardware::FabricKind::kRailOnly && plan.spreads_experts();
  // Rings of an odd number of nodes change rails where they close.
  const bool changes_rails = cluster.fabric.kind == hardware::FabricKind::kRailOnly && block > 0 &&
                             plan.data_parallel / block * ring_nodes_per_block(cluster, plan, block) % 2 == 1;
  if (!alike || split || exchanges || changes_rails || block == 0 || plan.data_parallel < 2 * block)
    return sample;
  sample.blocks = plan.data_parallel / block;
  sample.kept_blocks = 2;
  sample.plan.data_parallel = sample.kept_blocks * block;
  sample.plan.gpus = plan.gpus / sample.blocks * sample.kept_blocks;
  // Routes are charged the height of the fabric: the sample's must be as high.
  const hardware::FabricSpec& fabric = cluster.fabric;
  const bool several_leaves = plan.gpus > cluster.gpus_per_node * fabric.nodes_per_leaf;
  const bool several_pods =
      fabric.nodes_per_pod > 0 && plan.gpus > cluster.gpus_per_node * fabric.nodes_per_pod;
  if (several_leaves) sample.cluster.fabric.nodes_per_leaf = 1;
  if (several_pods) sample.cluster.fabric.nodes_per_pod = 1;
  return sample;
}

}  // namespace trainsim::folding
