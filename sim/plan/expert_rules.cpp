// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "sim/base/spelling.hpp"
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

constexpr const char* kDegree = "plan.expert_parallel";
constexpr const char* kTensorDegree = "plan.expert_tensor_parallel";

/// A dense model has nothing to share out.
void check_dense(const Facts& facts, Problems& problems) {
  if (facts.model.experts.active()) return;
  if (facts.plan.expert_parallel > 1) {
    problems.push_back({kDegree, text(facts.plan.expert_parallel) + " needs a model with experts, and " +
                                     facts.model.name +
                                     " is dense; legal here: 1, or describe the experts in model.experts"});
  }
  if (facts.plan.expert_tensor_parallel > 0) {
    problems.push_back({kTensorDegree, "means nothing for " + facts.model.name +
                                           ", which is dense; remove this key, or describe the experts in "
                                           "model.experts"});
  }
}

/// Degrees that divide both the experts and the ranks of a stage, in whole expert tensor-parallel groups.
std::string legal_degrees(const Facts& facts) {
  const std::int64_t groups = facts.plan.expert_ranks() / facts.plan.expert_tensor();
  return "; legal here: " + join_numbers(divisors(std::gcd(facts.model.experts.count, groups)));
}

bool tensor_degree_fits(const Facts& facts) {
  return facts.plan.expert_tensor() == 1 || facts.plan.expert_tensor() == facts.plan.tensor_parallel;
}

void check_degree(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const std::int64_t degree = plan.expert_parallel;
  if (!facts.model.experts.active() || !facts.grid_fits() || !tensor_degree_fits(facts)) return;
  const std::int64_t count = facts.model.experts.count;
  const std::int64_t groups = plan.expert_ranks() / plan.expert_tensor();
  if (count % degree != 0) {
    problems.push_back({kDegree, text(degree) + " does not divide the " + text(count) +
                                     " experts of a layer" + legal_degrees(facts)});
  }
  if (groups % degree == 0) return;
  std::string message = text(degree) + " does not divide data_parallel " + text(plan.data_parallel);
  const bool whole = plan.expert_tensor() != plan.tensor_parallel;
  if (plan.context_parallel > 1) message += " x context_parallel " + text(plan.context_parallel);
  if (whole) message += " x tensor_parallel " + text(plan.tensor_parallel);
  if (whole || plan.context_parallel > 1) {
    message += " = " + text(groups) + ", the ranks of a stage that experts can be spread over";
  } else {
    message += ", whose ranks the experts are spread over";
  }
  problems.push_back({kDegree, message + legal_degrees(facts)});
}

void check_tensor_degree(const Facts& facts, Problems& problems) {
  if (!facts.model.experts.active() || tensor_degree_fits(facts)) return;
  problems.push_back({kTensorDegree, text(facts.plan.expert_tensor()) +
                                         " is neither 1 nor tensor_parallel; "
                                         "legal here: 1, " +
                                         text(facts.plan.tensor_parallel)});
}

void check_widths(const Facts& facts, Problems& problems) {
  const model::Experts& experts = facts.model.experts;
  if (!experts.active() || !tensor_degree_fits(facts)) return;
  if (experts.intermediate_size % facts.plan.expert_tensor() != 0) {
    problems.push_back({kTensorDegree, text(facts.plan.expert_tensor()) + " does not divide the width " +
                                           text(experts.intermediate_size) +
                                           " of an expert (model.experts.intermediate_size); legal here: 1"});
  }
  if (experts.shared_intermediate_size % facts.plan.tensor_parallel != 0) {
    problems.push_back({"plan.tensor_parallel", text(facts.plan.tensor_parallel) +
                                                    " does not divide the width " +
                                                    text(experts.shared_intermediate_size) +
                                                    " of the shared experts "
                                                    "(model.experts.shared_intermediate_size)"});
  }
}

/// Each rank routes tokens of its own, which tensor-parallel ranks only have with sequence parallelism;
/// Megatron-LM's MoE layer refuses to train without it.
void check_sequence_parallel(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!facts.model.experts.active() || plan.tensor_parallel == 1 || plan.sequence_parallel) return;
  problems.push_back({"plan.sequence_parallel",
                      "experts with tensor_parallel " + text(plan.tensor_parallel) +
                          " need it, so that each rank routes its own tokens (Megatron-LM asks for it, too); "
                          "write sequence_parallel: true, or tensor_parallel: 1"});
}

/// Of its k copies of a token a rank can get as many as it has experts at most, and all copies of all ranks
/// at most.
void check_imbalance(const Facts& facts, Problems& problems) {
  const model::Experts& experts = facts.model.experts;
  const std::int64_t degree = facts.plan.expert_parallel;
  if (!experts.active() || degree < 2 || experts.count % degree != 0) return;
  const double most = std::min(static_cast<double>(degree),
                               static_cast<double>(experts.count) / static_cast<double>(experts.per_token));
  if (experts.imbalance <= most) return;
  std::ostringstream message;
  message << experts.imbalance << " times an even share of tokens is more than a rank with "
          << experts.count / degree << " of " << experts.count << " experts can get when each token visits "
          << experts.per_token << "; legal here: 1 to " << std::floor(most * 1e4) / 1e4;
  problems.push_back({"model.experts.imbalance", message.str()});
}

/// What is not modelled together with experts.
void check_combinations(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!facts.model.experts.active()) return;
  const auto refuse = [&problems](const char* field, const std::string& what, const std::string& legal) {
    problems.push_back(
        {field, what + " of a model with experts is not supported by this version; legal here: " + legal});
  };
  if (plan.shard_group > 0 && plan.sharding != Sharding::kNone)
    refuse("plan.sharding.group", "sharding in groups", "all");
  if (plan.offload.active()) refuse("plan.sharding.offload", "offloading", "none");
  if (plan.lora.active())
    refuse("plan.lora", "low-rank adaptation", "no adapters, so that all weights are trained");
}

/// A graph is launched as one, and the host waits for the GPU in the middle of a layer.
void check_launch(const Facts& facts, Problems& problems) {
  if (!facts.model.experts.active() || facts.plan.launch != Launch::kCudaGraph) return;
  problems.push_back({"software.launch",
                      "cuda-graph can't hold layers with experts: the host must learn from the GPU how many "
                      "tokens each of them gets before it goes on; legal here: eager, compiled or blocking"});
}

void check_modules(const Facts& facts, Problems& problems) {
  if (facts.model.experts.active() || !facts.plan.recompute.repeats(&RecomputeModules::experts)) return;
  problems.push_back({"plan.recompute.modules", "moe is the part of a layer with experts, and " +
                                                    facts.model.name + " is dense; write mlp instead"});
}

}  // namespace

std::vector<Rule> expert_rules() {
  return {
      {{"model.experts", kDegree, kTensorDegree}, check_dense},
      {{"gpus", "model.experts", kDegree, kTensorDegree, "plan.tensor_parallel", "plan.pipeline_parallel",
        "plan.context_parallel", "plan.data_parallel"},
       check_degree},
      {{"model.experts", kTensorDegree, "plan.tensor_parallel"}, check_tensor_degree},
      {{"model.experts", kTensorDegree, "plan.tensor_parallel"}, check_widths},
      {{"model.experts", "plan.tensor_parallel", "plan.sequence_parallel"}, check_sequence_parallel},
      {{"model.experts", "plan.sharding", "plan.lora"}, check_combinations},
      {{"model.experts", "plan.recompute"}, check_modules},
      {{"model.experts", kDegree}, check_imbalance},
      {{"model.experts", "software.launch"}, check_launch},
  };
}

}  // namespace trainsim::plan
