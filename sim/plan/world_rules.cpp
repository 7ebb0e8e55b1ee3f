// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/spelling.hpp"
#include "sim/hardware/fabric_graph.hpp"
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
  problems.push_back({"gpus", text(plan.gpus) + (too_few ? " is fewer than" : " is not a multiple of") + " " +
                                  facts.grid_text() + " = " + text(facts.grid()) +
                                  "; nearest legal: " + nearest_worlds(facts)});
}

void check_data_parallel(const Facts& facts, Problems& problems) {
  const auto& [plan, model, cluster] = facts;
  if (plan.gpus % facts.grid() != 0 || facts.grid_fits()) return;
  problems.push_back({"plan.data_parallel",
                      text(plan.data_parallel) + " is not gpus " + text(plan.gpus) + " / (" +
                          facts.grid_text() + ") = " + text(plan.gpus / facts.grid()) +
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

void check_max_nodes(const Facts& facts, Problems& problems) {
  const std::int64_t most = facts.cluster.fabric.max_nodes;
  const std::int64_t nodes =
      gpus_in_reach(facts.plan, facts.cluster.gpus_per_node) / facts.cluster.gpus_per_node;
  if (most == 0 || nodes <= most || nodes < 2) return;
  if (!facts.plan.nodes.empty()) {
    problems.push_back({"plan.placement", "node " + text(nodes - 1) +
                                              " does not exist; the fabric connects " + text(most) +
                                              " nodes, from 0 on"});
    return;
  }
  problems.push_back({"gpus", text(facts.plan.gpus) + " needs " + text(nodes) + " nodes, more than the " +
                                  text(most) + " that the fabric can connect; use at most " +
                                  text(most * facts.cluster.gpus_per_node) + " GPUs or a larger fabric"});
}

void check_placement(const Facts& facts, Problems& problems) {
  const auto& [plan, model, cluster] = facts;
  if (plan.nodes.empty()) return;
  const std::int64_t needed = (plan.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  const auto given = static_cast<std::int64_t>(plan.nodes.size());
  if (given != needed) {
    problems.push_back({"plan.placement", "names " + text(given) + " nodes, but " + text(plan.gpus) +
                                              " GPUs fill " + text(needed) + " of " +
                                              text(cluster.gpus_per_node) + " GPUs each"});
  }
  std::vector<std::int64_t> sorted = plan.nodes;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    problems.push_back({"plan.placement", "names node " + text(*twice) + " twice; a node can be used once"});
  if (cluster.max_gpus > 0 && (sorted.back() + 1) * cluster.gpus_per_node > cluster.max_gpus) {
    problems.push_back({"plan.placement",
                        "node " + text(sorted.back()) + " does not exist; the cluster has " +
                            text(cluster.max_gpus / cluster.gpus_per_node) + " nodes, from 0 on (max_gpus)"});
  }
}

/// How many parts of the kind that a fault hits lie in the job's reach, and what they are called.
std::pair<std::int64_t, std::string> parts_in_reach(const Facts& facts, hardware::FaultPlace place) {
  const ClusterSpec& cluster = facts.cluster;
  const std::int64_t gpus = gpus_in_reach(facts.plan, cluster.gpus_per_node);
  const std::int64_t nodes = (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  switch (place) {
    case hardware::FaultPlace::kNic:
      return {nodes > 1 ? nodes * cluster.nics_per_node : 0, "nic"};
    case hardware::FaultPlace::kGpuPort:
      return {gpus, "gpu_port"};
    case hardware::FaultPlace::kLeafUplinks:
      return {hardware::FabricGraph(cluster, nodes).count(hardware::VertexKind::kLeaf), "leaf"};
  }
  return {0, ""};
}

/// Whether the job runs on the node of a NIC.
bool uses_node_of(const Facts& facts, const hardware::Fault& nic) {
  const std::vector<std::int64_t>& nodes = facts.plan.nodes;
  const std::int64_t node = nic.index / facts.cluster.nics_per_node;
  if (nodes.empty()) return node * facts.cluster.gpus_per_node < facts.plan.gpus;
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

bool all_nics_failed(const ClusterSpec& cluster, std::int64_t node) {
  std::set<std::int64_t> failed;
  for (const hardware::Fault& fault : cluster.faults) {
    const bool gone = fault.place == hardware::FaultPlace::kNic && fault.bandwidth <= 0;
    if (gone && fault.index / cluster.nics_per_node == node) failed.insert(fault.index);
  }
  return static_cast<std::int64_t>(failed.size()) == cluster.nics_per_node;
}

/// A rail-only fabric needs a rail on which every node has a NIC that works.
void check_rails(const Facts& facts, Problems& problems) {
  const ClusterSpec& cluster = facts.cluster;
  if (cluster.fabric.kind != hardware::FabricKind::kRailOnly || cluster.nics_per_node == 0) return;
  std::set<std::int64_t> broken;
  for (const hardware::Fault& fault : cluster.faults) {
    if (fault.place == hardware::FaultPlace::kNic && fault.bandwidth <= 0 && uses_node_of(facts, fault))
      broken.insert(fault.index % cluster.nics_per_node);
  }
  if (static_cast<std::int64_t>(broken.size()) < cluster.nics_per_node) return;
  problems.push_back({"cluster.faults",
                      "lost NICs break every rail of a rail-only fabric somewhere, so that nodes can't "
                      "reach each other; leave a node out (plan.placement)"});
}

void check_faults(const Facts& facts, Problems& problems) {
  const ClusterSpec& cluster = facts.cluster;
  check_rails(facts, problems);
  for (std::size_t i = 0; i < cluster.faults.size(); ++i) {
    const hardware::Fault& fault = cluster.faults[i];
    const auto [count, key] = parts_in_reach(facts, fault.place);
    const std::string field = "cluster.faults[" + std::to_string(i) + "]." + key;
    if (cluster.nics_per_node == 0 && fault.place != hardware::FaultPlace::kGpuPort) {
      problems.push_back(
          {field, "hits a network that the cluster does not have (nics_per_node 0); remove it"});
    } else if (fault.index >= count) {
      problems.push_back({field, text(fault.index) + " is not within reach of the job, which sees " +
                                     (count > 1   ? "0 to " + text(count - 1)
                                      : count > 0 ? "only 0"
                                                  : "none")});
    } else if (fault.bandwidth <= 0 && uses_node_of(facts, fault) &&
               all_nics_failed(cluster, fault.index / cluster.nics_per_node)) {
      problems.push_back({field, "leaves node " + text(fault.index / cluster.nics_per_node) +
                                     " without a NIC that works; leave the node out (plan.placement)"});
    }
  }
}

}  // namespace

std::vector<Rule> world_rules() {
  return {
      {{"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel"}, check_grid},
      {{"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel",
        "plan.data_parallel"},
       check_data_parallel},
      {{"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel",
        "cluster.gpus_per_node"},
       check_nodes},
      {{"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel",
        "cluster.max_gpus"},
       check_max_gpus},
      {{"gpus", "cluster.gpus_per_node", "cluster.nics_per_node"}, check_network},
      {{"cluster.gpus_per_node", "cluster.nics_per_node"}, check_nics},
      {{"gpus", "cluster.slow_gpus"}, check_slow_gpus},
      {{"gpus", "plan.placement", "cluster.gpus_per_node", "cluster.fabric"}, check_max_nodes},
      {{"gpus", "plan.placement", "cluster.gpus_per_node", "cluster.max_gpus"}, check_placement},
      {{"gpus", "plan.placement", "cluster.gpus_per_node", "cluster.nics_per_node", "cluster.fabric",
        "cluster.faults"},
       check_faults},
  };
}

}  // namespace trainsim::plan
