// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/fp8.hpp"

#include <cmath>

#include "sim/lowering/experts.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/lowering/tape.hpp"

namespace trainsim::lowering {

using plan::Fp8Recipe;

double fp8_element_bytes(Fp8Recipe recipe) {
  switch (recipe) {
    case Fp8Recipe::kDelayed:
    case Fp8Recipe::kTensorwise:
    case Fp8Recipe::kRowwise:
      return 1.0;
    case Fp8Recipe::kMxfp8:
      return 1.0 + 1.0 / 32.0;
    case Fp8Recipe::kBlockwise:
      return 1.0 + 4.0 / 128.0;
  }
  return 1.0;
}

double largest_bytes(Fp8Recipe recipe, bool at_hand) {
  constexpr double read = 2.0;
  return recipe == Fp8Recipe::kTensorwise && !at_hand ? read : 0.0;
}

double cast_bytes(Fp8Recipe recipe, int copies, bool at_hand) {
  // The scale of a whole tensor is not known until all of it is made.
  const double read = at_hand && recipe != Fp8Recipe::kTensorwise ? 0.0 : 2.0;
  return largest_bytes(recipe, at_hand) + read + copies * fp8_element_bytes(recipe);
}

bool scales_rows(const plan::ParallelPlan& plan) {
  return plan.uses_fp8() && plan.fp8.recipe == Fp8Recipe::kRowwise;
}

double gathered_share(const plan::ParallelPlan& plan) {
  if (!plan.uses_fp8() || scales_rows(plan)) return 1.0;
  return fp8_element_bytes(plan.fp8.recipe) / static_cast<double>(plan.element_bytes());
}

bool keeps_fp8_inputs(const plan::ParallelPlan& plan) {
  return plan.uses_fp8() && plan.transformer_engine && !plan.lora.active();
}

Bytes kept_fp8_bytes(const plan::ParallelPlan& plan, std::int64_t elements) {
  if (!keeps_fp8_inputs(plan)) return 0;
  return std::llround(static_cast<double>(elements) * fp8_element_bytes(plan.fp8.recipe));
}

void keep_input(Tape& tape, Operation& operation, Bytes copy) {
  if (copy == 0) {
    operation.keeps.push_back(operation.reads.front());
    return;
  }
  operation.writes.push_back(tape.tensor(operation.name + " input in 8 bits", copy));
  operation.keeps.push_back(operation.writes.back());
}

bool casts_weights_each_time(const plan::ParallelPlan& plan) {
  if (!plan.uses_fp8() || plan.fp8.parameters) return false;
  return plan.works_by_units() || plan.framework == plan::Framework::kFsdp;
}

Fp8Parameters& Fp8Parameters::operator+=(const Fp8Parameters& more) {
  shared += more.shared;
  experts += more.experts;
  return *this;
}

Fp8Parameters fp8_layer_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   model::LayerKind kind) {
  Fp8Parameters parameters;
  if (!plan.uses_fp8()) return parameters;
  for (const LinearShape& linear : layer_linears(model, plan, kind))
    parameters.shared += linear.in * linear.out;
  for (const LinearShape& linear : latent_linears(model, plan)) parameters.shared += linear.in * linear.out;
  if (kind == model::LayerKind::kDense) return parameters;
  for (const LinearShape& linear : expert_linears(model, plan)) parameters.experts += linear.in * linear.out;
  parameters.experts *= ExpertShapes(model, plan).local;
  return parameters;
}

Fp8Parameters fp8_stage_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   std::int64_t stage) {
  Fp8Parameters parameters;
  for (const model::LayerKind kind : stage_layer_kinds(model, plan, stage)) {
    parameters += fp8_layer_parameters(model, plan, kind);
  }
  return parameters;
}

std::int64_t fp8_copied_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   std::int64_t stage) {
  const bool stay = plan.uses_fp8() && !plan.fp8.parameters && !casts_weights_each_time(plan);
  return stay ? fp8_stage_parameters(model, plan, stage).total() : 0;
}

double gathered_parameter_bytes(const plan::ParallelPlan& plan, double parameters, std::int64_t fp8) {
  const auto element = static_cast<double>(plan.element_bytes());
  if (!plan.fp8.parameters) return parameters * element;
  const auto low = static_cast<double>(fp8);
  return (parameters - low) * element + low * fp8_element_bytes(plan.fp8.recipe);
}

}  // namespace trainsim::lowering
