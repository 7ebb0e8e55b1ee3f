// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

/// What InternEvo does not have.
void check_internevo(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (plan.framework != Framework::kInternEvo) return;
  const auto refuse = [&problems](const char* field, const std::string& what, const std::string& legal) {
    problems.push_back(
        {field, what + " is not InternEvo's (software.framework: internevo); legal here: " + legal});
  };
  if (plan.sharding == Sharding::kZero2 && !plan.keeps_gathered)
    refuse("plan.sharding", to_string(plan.sharding), "none, zero1 or zero3");
  if (plan.offload.active()) refuse("plan.sharding.offload", "state on the host", "none");
  if (plan.uses_fp8() || plan.stores_fp32())
    refuse("plan.precision", to_string(plan.precision), "bf16 or fp16");
  else if (plan.gradient_bytes > plan.element_bytes())
    refuse("plan.gradient_dtype", "fp32, for gradients that are kept in compute precision,",
           to_string(plan.precision));
  if (plan.optimizer != Optimizer::kAdam) refuse("plan.optimizer", to_string(plan.optimizer), "adam");
  if (plan.lora.active()) refuse("plan.lora", "low-rank adaptation", "no adapters, or another framework");
  if (plan.overlap_parameter_gather)
    refuse("plan.overlap_parameter_gather", "true, for parameters that are broadcast and waited for,",
           "false");
  if (facts.model.experts.active()) refuse("model.experts", "a model with experts", "a dense model");
}

}  // namespace

std::vector<Rule> framework_rules() {
  return {{{"software.framework", "plan.sharding", "plan.precision", "plan.gradient_dtype", "plan.optimizer",
            "plan.lora", "plan.overlap_parameter_gather", "model.experts"},
           check_internevo}};
}

}  // namespace trainsim::plan
