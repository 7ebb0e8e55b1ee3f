// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace trainsim::plan {

namespace {

using hardware::ClusterSpec;
using model::ModelSpec;

std::string gigabytes(BytesPerSecond rate) {
  std::ostringstream stream;
  stream << rate / kGiga << " GB/s";
  return stream.str();
}

void warn_of_split_nodes(const ParallelPlan& plan, const ClusterSpec& cluster, Problems& warnings) {
  const bool one_node = plan.gpus <= cluster.gpus_per_node;
  if (one_node || cluster.gpus_per_node % plan.tensor_parallel == 0) return;
  warnings.push_back({"plan.tensor_parallel",
                      std::to_string(plan.tensor_parallel) + " ranks do not fit evenly into nodes of " +
                          std::to_string(cluster.gpus_per_node) +
                          " GPUs, so that tensor-parallel communication leaves the node, which is slow"});
}

/// Orders that do not begin with tensor-parallel ranks.
void warn_of_spread_tensor_ranks(const ParallelPlan& plan, const ClusterSpec& cluster, Problems& warnings) {
  const std::int64_t inside = tensor_ranks_in_node(plan, cluster.gpus_per_node);
  const bool fits = cluster.gpus_per_node % plan.tensor_parallel == 0;
  if (!fits || plan.gpus <= cluster.gpus_per_node || inside == plan.tensor_parallel) return;
  warnings.push_back({"plan.order", to_string(plan.order) + " puts " + std::to_string(inside) + " of the " +
                                        std::to_string(plan.tensor_parallel) +
                                        " tensor-parallel ranks of a group into a node, so that their "
                                        "communication leaves it, which is slow"});
}

void warn_of_replicated_heads(const ParallelPlan& plan, const ModelSpec& model, Problems& warnings) {
  if (model.num_key_value_heads >= plan.tensor_parallel) return;
  warnings.push_back({"plan.tensor_parallel",
                      std::to_string(plan.tensor_parallel) + " is more than the " +
                          std::to_string(model.num_key_value_heads) +
                          " key/value heads, so that each is replicated on " +
                          std::to_string(plan.tensor_parallel / model.num_key_value_heads) + " ranks"});
}

void warn_of_idle_sequence_parallel(const ParallelPlan& plan, Problems& warnings) {
  if (!plan.sequence_parallel || plan.tensor_parallel > 1) return;
  warnings.push_back({"plan.sequence_parallel", "true has no effect with tensor_parallel 1"});
}

void warn_of_idle_context_communication(const ParallelPlan& plan, Problems& warnings) {
  if (plan.context_parallel > 1 || plan.context_communication == ContextCommunication::kP2p) return;
  warnings.push_back({"plan.context_communication",
                      to_string(plan.context_communication) + " has no effect with context_parallel 1"});
}

/// The order of the dimensions puts context-parallel ranks right after tensor-parallel ones.
void warn_of_split_contexts(const ParallelPlan& plan, const ClusterSpec& cluster, Problems& warnings) {
  if (plan.context_parallel < 2 ||
      context_ranks_in_node(plan, cluster.gpus_per_node) == plan.context_parallel)
    return;
  if (plan.context_communication != ContextCommunication::kAllToAll) return;
  warnings.push_back(
      {"plan.context_communication",
       "a2a exchanges queries, keys, values and outputs in every layer, and the " +
           std::to_string(plan.context_parallel) + " context-parallel ranks lie on several nodes of " +
           std::to_string(cluster.gpus_per_node) + " GPUs, which is slow; p2p hides most of it"});
}

void warn_of_no_steady_state(const ParallelPlan& plan, Problems& warnings) {
  const bool interleaved = plan.schedule == ScheduleKind::kInterleaved && plan.virtual_pipeline > 1;
  if (!interleaved || plan.micro_batches() != plan.pipeline_parallel) return;
  warnings.push_back(
      {"plan.global_batch_size", std::to_string(plan.global_batch_size) +
                                     " makes as many micro-batches as pipeline stages (" +
                                     std::to_string(plan.pipeline_parallel) +
                                     "), so that the interleaved schedule is all warm-up and cool-down"});
}

/// Legal, but some frameworks refuse it, and it is hardly ever meant.
void warn_of_few_micro_batches(const ParallelPlan& plan, Problems& warnings) {
  if (plan.micro_batches() >= plan.pipeline_parallel) return;
  warnings.push_back(
      {"plan.global_batch_size", std::to_string(plan.global_batch_size) + " makes fewer micro-batches (" +
                                     std::to_string(plan.micro_batches()) + ") than pipeline stages (" +
                                     std::to_string(plan.pipeline_parallel) +
                                     "), so that stages wait for most of the step; a larger batch or smaller "
                                     "micro-batches fill the pipeline"});
}

/// The most passes that the first stage has in flight.
std::int64_t most_in_flight(const ParallelPlan& plan) {
  const std::int64_t stages = plan.pipeline_parallel;
  const std::int64_t passes = plan.micro_batches() * plan.virtual_pipeline;
  switch (plan.schedule) {
    case ScheduleKind::kGpipe:
      return passes;
    case ScheduleKind::kOneFOneB:
    case ScheduleKind::kZeroBubbleH1:
      return std::min(passes, stages);
    case ScheduleKind::kInterleaved:
      return std::min(passes, 2 * (stages - 1) + (plan.virtual_pipeline - 1) * stages + 1);
    case ScheduleKind::kZeroBubbleH2:
      return std::min(passes, 2 * stages - 1);
  }
  return passes;
}

void warn_of_partial_recomputation(const ParallelPlan& plan, Problems& warnings) {
  const Recompute& recompute = plan.recompute;
  const std::int64_t most = most_in_flight(plan);
  if (recompute.partial_micro_batches < most) return;
  warnings.push_back({"plan.recompute.partial_micro_batches",
                      std::to_string(recompute.partial_micro_batches) +
                          " covers all that any stage has in flight (at most " + std::to_string(most) +
                          "), so that all of them recompute only partial_layers " +
                          std::to_string(recompute.partial_layers)});
}

void warn_of_idle_imbalance(const ParallelPlan& plan, const ModelSpec& model, Problems& warnings) {
  if (!model.experts.active() || model.experts.imbalance == 1.0 || plan.expert_parallel > 1) return;
  warnings.push_back({"model.experts.imbalance",
                      "has no effect with expert_parallel 1, where each rank has all experts of its tokens"});
}

bool crosses_nodes(const ParallelPlan& plan, const ClusterSpec& cluster) {
  return plan.gpus > cluster.gpus_per_node &&
         plan.data_context_ranks() > data_ranks_in_node(plan, cluster.gpus_per_node);
}

void warn_of_speedups_of_measured_times(const ParallelPlan& plan, Problems& warnings) {
  if (plan.profile.empty()) return;
  for (const OpClass op : kAllOpClasses) {
    const bool modelled = op == OpClass::kOptimizer && plan.profile.front().optimizer == 0;
    if (modelled || plan.op_speedups.of(op) == 1.0) continue;
    warnings.push_back({std::string("op.") + to_string(op), "has no effect on the times of plan.profile"});
  }
}

void warn_of_idle_weight_times(const ParallelPlan& plan, Problems& warnings) {
  if (plan.splits_backward()) return;
  for (const StageProfile& times : plan.profile) {
    if (times.weight == 0) continue;
    warnings.push_back({"plan.profile", "weight has no effect with schedule " + to_string(plan.schedule) +
                                            ", which runs weight gradients in its backward"});
    return;
  }
}

void warn_of_idle_optimizer_times(const ParallelPlan& plan, Problems& warnings) {
  const bool measured = std::any_of(plan.profile.begin(), plan.profile.end(),
                                    [](const StageProfile& times) { return times.optimizer > 0; });
  if (!measured || plan.offload.optimizer == OffloadTarget::kNone) return;
  warnings.push_back({"plan.profile", "optimizer has no effect, because the hosts' CPUs run the optimizer"});
}

void warn_of_shards_of_one(const ParallelPlan& plan, Problems& warnings) {
  if (!plan.is_hybrid() || plan.shard_ranks() > 1) return;
  warnings.push_back({"plan.sharding.group", "groups of one data-parallel rank shard nothing; " +
                                                 to_string(plan.sharding) + " has no effect"});
}

void warn_of_shared_nics(const ParallelPlan& plan, const ClusterSpec& cluster, Problems& warnings) {
  if (!crosses_nodes(plan, cluster) || cluster.nics_per_node == 0) return;
  const std::int64_t rings = cluster.gpus_per_node / cluster.nics_per_node;
  if (rings < 2) return;
  warnings.push_back({"cluster.nics_per_node", std::to_string(cluster.nics_per_node) + " NICs for " +
                                                   std::to_string(cluster.gpus_per_node) + " GPUs let " +
                                                   std::to_string(rings) +
                                                   " data-parallel rings share each NIC"});
}

/// How often a ring over the nodes of the first data-parallel group passes from one block of `nodes` nodes to
/// another.
std::int64_t crossings(const ParallelPlan& plan, std::int64_t gpus_per_node, std::int64_t nodes) {
  std::vector<std::int64_t> blocks;
  std::int64_t last_node = -1;
  for (Coordinates at; at.data < plan.data_parallel; ++at.data) {
    for (at.context = 0; at.context < plan.context_parallel; ++at.context) {
      const std::int64_t node = gpu_of(plan, rank_of(plan, at), gpus_per_node) / gpus_per_node;
      if (node != last_node) blocks.push_back(node / nodes);
      last_node = node;
    }
  }
  std::int64_t count = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) count += blocks[i] != blocks[(i + 1) % blocks.size()];
  return count;
}

void warn_of_oversubscription(const ParallelPlan& plan, const ClusterSpec& cluster, Problems& warnings) {
  const hardware::FabricSpec& fabric = cluster.fabric;
  if (!fabric.is_tree() || !crosses_nodes(plan, cluster)) return;
  const auto warn = [&](const char* field, double oversubscription, std::int64_t nodes, const char* what) {
    if (oversubscription <= 1.0 || nodes < 1) return;
    const std::int64_t count = crossings(plan, cluster.gpus_per_node, nodes);
    if (count == 0) return;
    std::ostringstream share;
    share << 100.0 / oversubscription;
    warnings.push_back({field, "the data-parallel rings of a stage cross between " + std::string(what) + " " +
                                   std::to_string(count) + " times, over uplinks with " +
                                   share.str().substr(0, 4) + " % of the bandwidth below them"});
  };
  warn("cluster.fabric.oversubscription", fabric.oversubscription, fabric.nodes_per_leaf, "leaves");
  warn("cluster.fabric.pod_oversubscription", fabric.pod_oversubscription, fabric.nodes_per_pod, "pods");
}

void warn_of_fast_network(const ClusterSpec& cluster, Problems& warnings) {
  const BytesPerSecond inside =
      cluster.bandwidth_within(cluster.gpus_per_node) / cluster.intra_node.efficiency;
  if (cluster.nics_per_node == 0 || cluster.nic.bandwidth <= inside) return;
  warnings.push_back(
      {"cluster.nic.bandwidth",
       "a NIC (" + gigabytes(cluster.nic.bandwidth) + ") is faster than the connection inside a node (" +
           gigabytes(inside) +
           "); check bits and bytes (8 Gb/s = 1 GB/s), and that each counts one direction of one GPU"});
}

}  // namespace

Problems warnings(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster) {
  Problems warnings;
  warn_of_split_nodes(plan, cluster, warnings);
  warn_of_spread_tensor_ranks(plan, cluster, warnings);
  warn_of_replicated_heads(plan, model, warnings);
  warn_of_idle_sequence_parallel(plan, warnings);
  warn_of_idle_context_communication(plan, warnings);
  warn_of_split_contexts(plan, cluster, warnings);
  warn_of_idle_imbalance(plan, model, warnings);
  warn_of_no_steady_state(plan, warnings);
  warn_of_few_micro_batches(plan, warnings);
  warn_of_partial_recomputation(plan, warnings);
  warn_of_fast_network(cluster, warnings);
  warn_of_speedups_of_measured_times(plan, warnings);
  warn_of_idle_weight_times(plan, warnings);
  warn_of_idle_optimizer_times(plan, warnings);
  warn_of_shards_of_one(plan, warnings);
  warn_of_shared_nics(plan, cluster, warnings);
  warn_of_oversubscription(plan, cluster, warnings);
  return warnings;
}

}  // namespace trainsim::plan
