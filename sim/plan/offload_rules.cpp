// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>

#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

constexpr const char* kField = "plan.sharding.offload";
constexpr const char* kOptimizer = "plan.sharding.offload.optimizer";
constexpr const char* kParameters = "plan.sharding.offload.parameters";
constexpr const char* kActivations = "plan.activation_offload";

/// What must be sharded, and how far, for it to be offloaded.
void check_stage(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!plan.offload.active()) return;
  if (plan.sharding == Sharding::kNone) {
    problems.push_back({kField,
                        "stage 0 shards nothing, and only shards are offloaded; write stage: 1, 2 or 3, "
                        "which a single GPU may have, too"});
  } else if (plan.offload.parameters != OffloadTarget::kNone && plan.sharding != Sharding::kZero3) {
    problems.push_back({kParameters, "only stage 3 gathers parameters when they are needed, not " +
                                         to_string(plan.sharding) +
                                         "; write stage: 3 (with reshard_after_forward), or offload the "
                                         "optimizer alone"});
  }
}

/// What each framework can offload.
void check_framework(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const Offload& offload = plan.offload;
  if (!offload.active()) return;
  const bool nvme = offload.optimizer == OffloadTarget::kNvme || offload.parameters == OffloadTarget::kNvme;
  if (nvme && plan.framework != Framework::kDeepSpeed) {
    problems.push_back({kField, "nvme is DeepSpeed's (ZeRO-Infinity), and software.framework is " +
                                    to_string(plan.framework) +
                                    "; write cpu, or software.framework: deepspeed"});
  }
  if (plan.framework == Framework::kFsdp && offload.optimizer != offload.parameters) {
    problems.push_back({kField,
                        "FSDP's CPUOffload moves the optimizer and the parameters together; write "
                        "{optimizer: cpu, parameters: cpu}, or another software.framework"});
  }
  if (plan.framework == Framework::kMegatron && offload.parameters != OffloadTarget::kNone) {
    problems.push_back({kParameters,
                        "Megatron-LM offloads its optimizer only (--optimizer-cpu-offload); write "
                        "none, or software.framework: deepspeed or fsdp"});
  }
  if (plan.overlap_parameter_gather) {
    problems.push_back({kField,
                        "the optimizer on the host hands parameters over at once, and "
                        "overlap_parameter_gather asks for parts of them; remove one of the two"});
  }
}

/// Optimizers that exist for CPUs (DeepSpeed's CPU Adam, Lion and Adagrad; PyTorch's own for FSDP).
void check_optimizer(const Facts& facts, Problems& problems) {
  const Optimizer optimizer = facts.plan.optimizer;
  if (facts.plan.offload.optimizer == OffloadTarget::kNone) return;
  const auto legal = {Optimizer::kAdam, Optimizer::kLion, Optimizer::kSgd, Optimizer::kSgdMomentum};
  if (std::find(legal.begin(), legal.end(), optimizer) != legal.end()) return;
  problems.push_back({kOptimizer, to_string(optimizer) +
                                      " has no version for CPUs; write plan.optimizer: adam, lion, sgd or "
                                      "momentum, or offload nothing"});
}

/// The last layer's activations are needed at once.
void check_activations(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (plan.offloaded_layers == 0) return;
  if (plan.pipeline_parallel > 1) {
    problems.push_back(
        {kActivations, "with pipeline_parallel " + text(plan.pipeline_parallel) +
                           " is not supported by this version, nor by Megatron-LM; legal here: "
                           "pipeline_parallel 1"});
  }
  const std::int64_t most = facts.model.num_layers - 1;
  if (plan.offloaded_layers <= most) return;
  const std::string legal = most > 0 ? "legal here: 1 to " + text(most)
                                     : "a single layer leaves nothing to offload; remove this key";
  problems.push_back({std::string(kActivations) + ".layers",
                      text(plan.offloaded_layers) + " is not less than the " + text(facts.model.num_layers) +
                          " layers of the model, of which the last stays on the GPU; " + legal});
}

/// What Megatron-LM's TransformerConfig refuses beside --cpu-offloading-num-layers.
void check_activations_of_megatron(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (plan.offloaded_layers == 0 || plan.framework != Framework::kMegatron) return;
  if (plan.recompute.granularity != RecomputeGranularity::kNone || plan.recompute.automatic) {
    problems.push_back(
        {kActivations,
         "Megatron-LM offloads activations only without recomputation; write recompute: none, or "
         "software.framework: deepspeed or fsdp"});
  }
  if (plan.launch == Launch::kCudaGraph) {
    problems.push_back(
        {kActivations,
         "Megatron-LM offloads no activations from CUDA graphs; write software.launch: eager, or "
         "remove this key"});
  }
}

void check_host(const Facts& facts, Problems& problems) {
  const Offload& offload = facts.plan.offload;
  if (!facts.plan.uses_host()) return;
  const std::optional<hardware::HostSpec>& host = facts.cluster.host;
  if (!host) {
    problems.push_back({offload.active() ? kField : kActivations,
                        "the cluster " + facts.cluster.name +
                            " does not say what its hosts are; add cluster.host with memory, "
                            "memory_bandwidth, memory_efficiency, pcie_bandwidth, uplink_bandwidth and "
                            "pcie_efficiency"});
    return;
  }
  const bool nvme = offload.optimizer == OffloadTarget::kNvme || offload.parameters == OffloadTarget::kNvme;
  if (nvme && (host->nvme_read_bandwidth <= 0 || host->nvme_write_bandwidth <= 0)) {
    problems.push_back(
        {kField, "the cluster " + facts.cluster.name +
                     " does not say what its disks do; add cluster.host.nvme_read_bandwidth and "
                     "nvme_write_bandwidth, or write cpu"});
  }
}

}  // namespace

std::vector<Rule> offload_rules() {
  return {
      {{"plan.sharding"}, check_stage},
      {{"plan.sharding", "software.framework", "plan.overlap_parameter_gather"}, check_framework},
      {{"plan.sharding", "plan.optimizer"}, check_optimizer},
      {{"plan.activation_offload", "plan.pipeline_parallel", "model.num_layers"}, check_activations},
      {{"plan.activation_offload", "plan.recompute", "software.framework", "software.launch"},
       check_activations_of_megatron},
      {{"plan.sharding", "plan.activation_offload", "cluster.host"}, check_host},
  };
}

}  // namespace trainsim::plan
