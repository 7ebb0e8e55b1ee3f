// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/plan/plan.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::plan {
namespace {

using Texts = std::vector<std::string>;

Texts problems(const ParallelPlan& plan) {
  Texts texts;
  for (const Problem& problem : check(plan, tests::small_gpt(), tests::round_cluster(), {}))
    texts.push_back(problem.field + ": " + problem.message);
  return texts;
}

ParallelPlan sharded(Framework framework, Sharding sharding, std::int64_t stages = 1) {
  ParallelPlan plan = tests::small_plan(8, 1, stages, 1);
  plan.framework = framework;
  plan.sharding = sharding;
  if (framework == Framework::kInternEvo) plan.gradient_bytes = 2;
  return plan;
}

TEST(FrameworkRules, KnowWhatInternEvoHasNot) {
  EXPECT_EQ(problems(sharded(Framework::kInternEvo, Sharding::kZero1)), Texts{});
  EXPECT_EQ(problems(sharded(Framework::kInternEvo, Sharding::kZero3)), Texts{});
  ParallelPlan plan = sharded(Framework::kInternEvo, Sharding::kZero2);
  plan.overlap_parameter_gather = true;
  plan.lora.rank = 8;
  plan.optimizer = Optimizer::kLion;
  plan.gradient_bytes = 4;
  const Texts found = problems(plan);
  const std::string evo = " is not InternEvo's (software.framework: internevo); legal here: ";
  for (const std::string& text :
       {"plan.sharding: zero2" + evo + "none, zero1 or zero3",
        "plan.overlap_parameter_gather: true, for parameters that are broadcast and waited for," + evo +
            "false",
        "plan.optimizer: lion" + evo + "adam",
        "plan.gradient_dtype: fp32, for gradients that are kept in compute precision," + evo + "bf16",
        "plan.lora: low-rank adaptation" + evo + "no adapters, or another framework"}) {
    EXPECT_NE(std::find(found.begin(), found.end(), text), found.end()) << text;
  }
}

TEST(FrameworkRules, ShardParametersInAPipelineWithFsdpAlone) {
  EXPECT_EQ(problems(sharded(Framework::kFsdp, Sharding::kZero3, 2)), Texts{});
  EXPECT_EQ(problems(sharded(Framework::kFsdp, Sharding::kZero2, 2)), Texts{});
  EXPECT_EQ(
      problems(sharded(Framework::kDeepSpeed, Sharding::kZero3, 2)),
      Texts{"plan.sharding: zero3 with pipeline_parallel 2 is FSDP's, and software.framework is deepspeed, "
            "which would reduce gradients in every micro-batch; legal here: none or zero1, or "
            "pipeline_parallel 1, or software.framework: fsdp"});
}

}  // namespace
}  // namespace trainsim::plan
