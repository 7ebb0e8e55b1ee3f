// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/kernels.hpp"

namespace trainsim::lowering {

namespace {

constexpr const char* kCast = "cast to 8 bits";

}  // namespace

Kernels KernelBook::cast_input(double elements, bool behind_norm) const {
  if (!plan_.uses_fp8()) return {};
  const plan::Fp8Recipe recipe = plan_.fp8.recipe;
  if (!keeps_fp8_inputs(plan_)) {
    const bool at_hand = plan_.fusion == plan::Fusion::kCompiled;
    return {kernels_.stream(kCast, elements * cast_bytes(recipe, 1, true, at_hand))};
  }
  // Transformer Engine's norms put out both copies instead of bf16, where they can.
  const bool fused = recipe == plan::Fp8Recipe::kDelayed || recipe == plan::Fp8Recipe::kMxfp8;
  if (behind_norm && fused) return {};
  return {kernels_.stream(kCast, elements * cast_bytes(recipe, 2, true, false))};
}

Kernels KernelBook::cast_gradient(double elements) const {
  if (!plan_.uses_fp8()) return {};
  const bool at_hand = plan_.fusion == plan::Fusion::kCompiled;
  return {
      kernels_.stream(kCast, elements * cast_bytes(plan_.fp8.recipe, 2, plan_.transformer_engine, at_hand))};
}

Kernels KernelBook::cast_input_again(double elements) const {
  if (!plan_.uses_fp8() || plan_.lora.active() || keeps_fp8_inputs(plan_)) return {};
  return {kernels_.stream(kCast, elements * cast_bytes(plan_.fp8.recipe, 1, true, false))};
}

Kernels KernelBook::cast_weight(const LinearShape& shape) const {
  if (!shape.fp8 || !casts_weights_each_time(plan_)) return {};
  const auto elements = static_cast<double>(shape.in * shape.out);
  return {kernels_.stream(kCast, elements * cast_bytes(plan_.fp8.recipe, 1, true, false))};
}

}  // namespace trainsim::lowering
