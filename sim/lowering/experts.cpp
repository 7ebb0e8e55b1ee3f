// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/experts.hpp"

#include <algorithm>
#include <cmath>

namespace trainsim::lowering {

namespace {

std::int64_t rounded_up(double value) {
  return static_cast<std::int64_t>(std::ceil(value));
}

std::int64_t ceil_div(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

}  // namespace

/// With a capacity c an expert takes at most c times its even share of tokens, so that at most a share c of
/// all is sent, and the fullest rank has at most c.
ExpertShapes::ExpertShapes(const model::ModelSpec& model, const plan::ParallelPlan& plan)
    : tokens(plan.micro_batch_size * model.sequence_length / (plan.tensor_parallel * plan.context_parallel)),
      copies(0),
      received(0),
      load(plan.expert_parallel > 1 ? model.experts.imbalance : 1.0),
      experts(model.experts.count),
      local(std::max<std::int64_t>(1, model.experts.count / plan.expert_parallel)),
      per_expert(0),
      hidden(model.hidden_size),
      ffn(model.experts.intermediate_size / plan.expert_tensor()),
      ffn_inputs((model.gated() ? 2 : 1) * ffn),
      element(plan.element_bytes()),
      expert_parallel(plan.expert_parallel),
      expert_tensor(plan.expert_tensor()) {
  const double sent = model.experts.sent_share();
  if (model.experts.capacity_factor > 0) load = std::min(load, model.experts.capacity_factor) / sent;
  copies = rounded_up(static_cast<double>(tokens * model.experts.per_token) * sent);
  received = rounded_up(static_cast<double>(copies) * load) * expert_tensor;
  per_expert = ceil_div(received, local);
}

std::array<LinearShape, 2> expert_linears(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  const ExpertShapes shapes(model, plan);
  const bool fp8 = plan.uses_fp8();
  return {{{shapes.hidden, shapes.ffn_inputs, false, fp8}, {shapes.ffn, shapes.hidden, false, fp8}}};
}

std::array<LinearShape, 2> shared_expert_linears(const model::ModelSpec& model,
                                                 const plan::ParallelPlan& plan) {
  const std::int64_t width = model.experts.shared_intermediate_size / plan.tensor_parallel;
  const bool fp8 = plan.uses_fp8();
  LinearShape in = {model.hidden_size, (model.gated() ? 2 : 1) * width, false, fp8};
  if (model.gated() && width > 0 && !plan.fused_linears.mlp) in.columns = {width, width};
  return {{in, {width, model.hidden_size, false, fp8}}};
}

std::int64_t expert_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  if (!model.experts.active()) return 0;
  std::int64_t parameters = 0;
  for (const LinearShape& linear : expert_linears(model, plan)) {
    parameters += linear.in * linear.out;
    if (model.linear_bias) parameters += linear.out;
  }
  return ExpertShapes(model, plan).local * parameters;
}

}  // namespace trainsim::lowering
