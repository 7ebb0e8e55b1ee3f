// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>

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

void warn_of_no_steady_state(const ParallelPlan& plan, Problems& warnings) {
  const bool interleaved = plan.schedule == ScheduleKind::kInterleaved && plan.virtual_pipeline > 1;
  if (!interleaved || plan.micro_batches() != plan.pipeline_parallel) return;
  warnings.push_back(
      {"plan.global_batch_size", std::to_string(plan.global_batch_size) +
                                     " makes as many micro-batches as pipeline stages (" +
                                     std::to_string(plan.pipeline_parallel) +
                                     "), so that the interleaved schedule is all warm-up and cool-down"});
}

void warn_of_fast_network(const ClusterSpec& cluster, Problems& warnings) {
  if (cluster.nics_per_node == 0 || cluster.nic.bandwidth <= cluster.intra_node.bandwidth) return;
  warnings.push_back(
      {"cluster.nic.bandwidth",
       "a NIC (" + gigabytes(cluster.nic.bandwidth) + ") is faster than the connection inside a node (" +
           gigabytes(cluster.intra_node.bandwidth) +
           "); check bits and bytes (8 Gb/s = 1 GB/s), and that each counts one direction of one GPU"});
}

}  // namespace

Problems warnings(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster) {
  Problems warnings;
  warn_of_split_nodes(plan, cluster, warnings);
  warn_of_replicated_heads(plan, model, warnings);
  warn_of_idle_sequence_parallel(plan, warnings);
  warn_of_no_steady_state(plan, warnings);
  warn_of_fast_network(cluster, warnings);
  return warnings;
}

}  // namespace trainsim::plan
