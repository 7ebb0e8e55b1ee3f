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

/// Megatron-LM has no layers that multiply apart.
void check_fused_linears(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  const bool all = plan.fused_linears.qkv && (plan.fused_linears.mlp || !facts.model.gated());
  if (plan.framework != Framework::kMegatron || all) return;
  problems.push_back({"software.fused_linears",
                      "leaves out what Megatron-LM always fuses (software.framework: megatron); legal here: "
                      "[qkv, mlp], or another framework"});
}

/// Megatron-LM's checkpoints run a layer to its end.
void check_early_stop(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (plan.framework != Framework::kMegatron || !plan.checkpoint_early_stop) return;
  problems.push_back(
      {"software.checkpoint_early_stop",
       "true, but checkpoints of Megatron-LM run a layer to its end (software.framework: megatron); "
       "legal here: false, or another framework"});
}

/// Only PyTorch's own loss is compiled, and not that of logits which ranks share.
void check_loss(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (plan.loss != Loss::kCompiled) return;
  const auto refuse = [&problems](const std::string& what, const std::string& instead) {
    problems.push_back(
        {"software.loss", "compiled with " + what + "; legal here: standard or fused, or " + instead});
  };
  if (plan.framework == Framework::kMegatron || plan.framework == Framework::kInternEvo) {
    refuse("software.framework " + to_string(plan.framework) + ", which has kernels of its own for it",
           "software.framework: fsdp or deepspeed");
  }
  if (plan.tensor_parallel > 1) {
    refuse("tensor_parallel " + text(plan.tensor_parallel) +
               ", whose ranks share the logits, is not supported by this version",
           "tensor_parallel: 1");
  }
}

}  // namespace

std::vector<Rule> framework_rules() {
  return {{{"software.fused_linears", "software.framework"}, check_fused_linears},
          {{"software.checkpoint_early_stop", "software.framework"}, check_early_stop},
          {{"software.loss", "software.framework", "plan.tensor_parallel"}, check_loss},
          {{"software.framework", "plan.sharding", "plan.precision", "plan.gradient_dtype", "plan.optimizer",
            "plan.lora", "plan.overlap_parameter_gather", "model.experts"},
           check_internevo}};
}

}  // namespace trainsim::plan
