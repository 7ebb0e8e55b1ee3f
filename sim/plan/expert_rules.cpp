// SPDX-License-Identifier: Apache-2.0
#include <numeric>

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
  const std::int64_t groups =
      facts.plan.tensor_parallel * facts.plan.data_parallel / facts.plan.expert_tensor();
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
  const std::int64_t groups = plan.tensor_parallel * plan.data_parallel / plan.expert_tensor();
  if (count % degree != 0) {
    problems.push_back({kDegree, text(degree) + " does not divide the " + text(count) +
                                     " experts of a layer" + legal_degrees(facts)});
  }
  if (groups % degree == 0) return;
  std::string message = text(degree) + " does not divide data_parallel " + text(plan.data_parallel);
  if (plan.expert_tensor() != plan.tensor_parallel) {
    message += " x tensor_parallel " + text(plan.tensor_parallel) + " = " + text(groups) +
               ", the ranks of a stage that experts can be spread over";
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

/// What is not modelled together with experts.
void check_combinations(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!facts.model.experts.active()) return;
  const auto refuse = [&problems](const char* field, const std::string& what, const std::string& legal) {
    problems.push_back(
        {field, what + " of a model with experts is not supported by this version; legal here: " + legal});
  };
  if (plan.sharding == Sharding::kZero2 || plan.sharding == Sharding::kZero3)
    refuse("plan.sharding", to_string(plan.sharding), "none or zero1");
  if (plan.shard_group > 0 && plan.sharding != Sharding::kNone)
    refuse("plan.sharding.group", "sharding in groups", "all");
  if (plan.context_parallel > 1) refuse("plan.context_parallel", "sharing each sequence", "1");
  if (plan.offload.active()) refuse("plan.sharding.offload", "offloading", "none");
  if (plan.lora.active())
    refuse("plan.lora", "low-rank adaptation", "no adapters, so that all weights are trained");
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
        "plan.data_parallel"},
       check_degree},
      {{"model.experts", kTensorDegree, "plan.tensor_parallel"}, check_tensor_degree},
      {{"model.experts", kTensorDegree, "plan.tensor_parallel"}, check_widths},
      {{"model.experts", "plan.tensor_parallel", "plan.sequence_parallel"}, check_sequence_parallel},
      {{"model.experts", "plan.sharding", "plan.lora", "plan.context_parallel"}, check_combinations},
      {{"model.experts", "plan.recompute"}, check_modules},
  };
}

}  // namespace trainsim::plan
