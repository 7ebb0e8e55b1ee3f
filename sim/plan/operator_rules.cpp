// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

constexpr const char* kField = "plan.recompute";

void refuse(Problems& problems, const std::string& what, const std::string& legal) {
  problems.push_back({kField, "operators with " + what + "; legal here: " + legal});
}

/// Other frameworks have checkpoints of their own, and their multiplies are no operators of PyTorch.
void check_software(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!plan.recompute.by_operators()) return;
  if (plan.framework != Framework::kFsdp) {
    refuse(problems,
           "software.framework " + to_string(plan.framework) +
               ", but it is PyTorch's selective checkpoint, as torchtitan uses it",
           "none, selective or full, or software.framework: fsdp");
  }
  if (plan.transformer_engine) {
    refuse(problems,
           "software.transformer_engine true, whose multiplies are no operators that PyTorch could save",
           "none, selective or full, or software.transformer_engine: false");
  }
}

void check_model(const Facts& facts, Problems& problems) {
  if (!facts.plan.recompute.by_operators()) return;
  const auto unsupported = [&problems](const std::string& what) {
    refuse(problems, what + " is not supported by this version", "none, selective or full");
  };
  if (facts.model.experts.active()) unsupported("experts");
  if (facts.model.latent.active()) unsupported("latent attention");
  if (facts.plan.lora.active()) unsupported("low-rank adaptation");
}

void check_passes(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!plan.recompute.by_operators()) return;
  if (plan.splits_backward()) {
    refuse(problems, "schedule " + to_string(plan.schedule) + " is not supported by this version",
           "none, selective or full, or schedule: 1f1b");
  }
  if (plan.recompute.partial_micro_batches > 0) {
    refuse(problems, "partial_micro_batches, which Megatron Core has for selective and full recomputation",
           "granularity: selective or full, or no partial_micro_batches");
  }
}

}  // namespace

std::vector<Rule> operator_rules() {
  return {{{kField, "software.framework", "software.transformer_engine"}, check_software},
          {{kField, "model.experts", "model.latent_attention", "plan.lora"}, check_model},
          {{kField, "plan.schedule"}, check_passes}};
}

}  // namespace trainsim::plan
