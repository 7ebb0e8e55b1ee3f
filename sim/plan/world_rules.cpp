// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/spelling.hpp"
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

using hardware::ClusterSpec;

bool fills_nodes(std::int64_t gpus, const ClusterSpec& cluster) {
  return cluster.gpus_per_node < 1 || gpus <= cluster.gpus_per_node || gpus % cluster.gpus_per_node == 0;
}

/// The next legal numbers of GPUs below and above a wrong one.
std::string nearest_worlds(const Facts& facts) {
  const auto& [plan, model, cluster] = facts;
  const std::int64_t grid = facts.grid();
  const std::int64_t most = cluster.max_gpus;
  std::int64_t below = plan.gpus / grid * grid;
  if (most > 0) below = std::min(below, most / grid * grid);
  std::int64_t above = below + grid;
  while (below > 0 && !fills_nodes(below, cluster)) below -= grid;
  while (!fills_nodes(above, cluster)) above += grid;
  std::vector<std::string> legal;
  if (below > 0 && below != plan.gpus) legal.push_back(text(below));
  if (most == 0 || above <= most) legal.push_back(text(above));
  return legal.empty() ? "none, reduce the degrees of parallelism" : join_alternatives(legal);
}

void check_grid(const Facts& facts, Problems& problems) {
  const auto& [plan, model, cluster] = facts;
  if (plan.gpus % facts.grid() == 0) return;
  const bool too_few = plan.gpus < facts.grid();
  problems.push_back({"gpus", text(plan.gpus) + (too_few ? " is fewer than" : " is not a multiple of") +
                                  " tensor_parallel " + text(plan.tensor_parallel) + " x pipeline_parallel " +
                                  text(plan.pipeline_parallel) + " = " + text(facts.grid()) +
                                  "; nearest legal: " + nearest_worlds(facts)});
}

void check_data_parallel(const Facts& facts, Problems& problems) {
  const auto& [plan, model, cluster] = facts;
  if (plan.gpus % facts.grid() != 0 || facts.grid_fits()) return;
  problems.push_back({"plan.data_parallel",
                      text(plan.data_parallel) + " is not gpus " + text(plan.gpus) + " / (tensor_parallel " +
                          text(plan.tensor_parallel) + " x pipeline_parallel " +
                          text(plan.pipeline_parallel) + ") = " + text(plan.gpus / facts.grid()) +
                          "; leave it out, or write gpus: " + text(facts.grid() * plan.data_parallel)});
}

void check_nodes(const Facts& facts, Problems& problems) {
  if (fills_nodes(facts.plan.gpus, facts.cluster)) return;
  problems.push_back({"gpus", text(facts.plan.gpus) + " does not fill whole nodes of " +
                                  text(facts.cluster.gpus_per_node) +
                                  " GPUs; nearest legal: " + nearest_worlds(facts)});
}

void check_max_gpus(const Facts& facts, Problems& problems) {
  const std::int64_t most = facts.cluster.max_gpus;
  if (most == 0 || facts.plan.gpus <= most) return;
  problems.push_back(
      {"gpus", text(facts.plan.gpus) + " is more than the " + text(most) +
                   " GPUs of the cluster (max_gpus); nearest legal: " + nearest_worlds(facts)});
}

void check_network(const Facts& facts, Problems& problems) {
  const ClusterSpec& cluster = facts.cluster;
  if (cluster.nics_per_node > 0 || facts.plan.gpus <= cluster.gpus_per_node) return;
  problems.push_back(
      {"cluster.nics_per_node", "0 NICs leave " + text(facts.plan.gpus) + " GPUs in nodes of " +
                                    text(cluster.gpus_per_node) +
                                    " unconnected; give nics_per_node, nic, pcie and fabric, or write "
                                    "gpus: " +
                                    text(cluster.gpus_per_node)});
}

void check_nics(const Facts& facts, Problems& problems) {
  const std::int64_t gpus = facts.cluster.gpus_per_node;
  const std::int64_t nics = facts.cluster.nics_per_node;
  if (nics == 0 || gpus % nics == 0) return;
  problems.push_back(
      {"cluster.nics_per_node", text(nics) + " NICs cannot be shared evenly by " + text(gpus) +
                                    " GPUs; legal here: " + join_numbers(divisors(gpus)) +
                                    "; for several NICs per GPU give one with their joint bandwidth"});
}

void check_slow_gpus(const Facts& facts, Problems& problems) {
  for (std::size_t i = 0; i < facts.cluster.slow_gpus.size(); ++i) {
    const std::int64_t rank = facts.cluster.slow_gpus[i].gpu;
    if (rank < facts.plan.gpus) continue;
    problems.push_back(
        {"cluster.slow_gpus[" + std::to_string(i) + "].gpu",
         text(rank) + " is not the rank of a GPU; ranks here: 0 to " + text(facts.plan.gpus - 1)});
  }
}

}  // namespace

std::vector<Rule> world_rules() {
  return {
      {{"gpus", "plan.tensor_parallel", "plan.pipeline_parallel"}, check_grid},
      {{"gpus", "plan.tensor_parallel", "plan.pipeline_parallel", "plan.data_parallel"}, check_data_parallel},
      {{"gpus", "plan.tensor_parallel", "plan.pipeline_parallel", "cluster.gpus_per_node"}, check_nodes},
      {{"gpus", "plan.tensor_parallel", "plan.pipeline_parallel", "cluster.max_gpus"}, check_max_gpus},
      {{"gpus", "cluster.gpus_per_node", "cluster.nics_per_node"}, check_network},
      {{"cluster.gpus_per_node", "cluster.nics_per_node"}, check_nics},
      {{"gpus", "cluster.slow_gpus"}, check_slow_gpus},
  };
}

}  // namespace trainsim::plan
