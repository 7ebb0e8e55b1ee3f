// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/kernels.hpp"

namespace trainsim::lowering {

namespace {

constexpr const char* kCast = "cast to 8 bits";

Kernels repeated(const Kernels& kernels, std::int64_t times) {
  Kernels all;
  all.reserve(kernels.size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 0; i < times; ++i) all.insert(all.end(), kernels.begin(), kernels.end());
  return all;
}

}  // namespace

double KernelBook::cast_elements() const {
  return static_cast<double>(scales_rows(plan_) ? shapes_.tokens * shapes_.hidden
                                                : shapes_.residual_elements);
}

CastFrom KernelBook::cast_from(bool behind_norm) const {
  if (scales_rows(plan_) && shapes_.sequence_parallel) return CastFrom::kRanks;
  return behind_norm ? CastFrom::kNorm : CastFrom::kKernel;
}

Kernels KernelBook::cast_input(double elements, CastFrom from, std::int64_t modules) const {
  if (!plan_.uses_fp8()) return {};
  const plan::Fp8Recipe recipe = plan_.fp8.recipe;
  if (!keeps_fp8_inputs(plan_)) {
    const bool at_hand = plan_.fusion == plan::Fusion::kCompiled && from != CastFrom::kRanks;
    const Kernels cast = {kernels_.stream(kCast, elements * cast_bytes(recipe, 1, at_hand))};
    return repeated(cast, scales_rows(plan_) ? modules : 1);
  }
  // Transformer Engine's norms put out both copies instead of bf16, where they can.
  const bool fused = recipe == plan::Fp8Recipe::kDelayed || recipe == plan::Fp8Recipe::kMxfp8;
  if (from == CastFrom::kNorm && fused) return {};
  return {kernels_.stream(kCast, elements * cast_bytes(recipe, 2, false))};
}

Kernels KernelBook::column_copy(double elements) const {
  constexpr double bf16 = 2.0;
  const double fp8 = fp8_element_bytes(plan_.fp8.recipe);
  // The scale of a column is not known before all of it was read: it is turned round in bf16 first.
  if (scales_rows(plan_))
    return {kernels_.transposition("transpose", elements * (bf16 + bf16)),
            kernels_.stream(kCast, elements * (bf16 + fp8))};
  return {kernels_.transposition(kCast, elements * (bf16 + fp8))};
}

Kernels KernelBook::cast_gradient(double elements, CastFrom from) const {
  if (!plan_.uses_fp8()) return {};
  const plan::Fp8Recipe recipe = plan_.fp8.recipe;
  const bool at_hand = plan_.fusion == plan::Fusion::kCompiled && from != CastFrom::kRanks;
  if (plan_.transformer_engine) return {kernels_.stream(kCast, elements * cast_bytes(recipe, 2, at_hand))};
  return joined({kernels_.stream(kCast, elements * cast_bytes(recipe, 1, at_hand))}, column_copy(elements));
}

Kernels KernelBook::cast_input_again(double elements, std::int64_t modules) const {
  if (!plan_.uses_fp8() || plan_.lora.active() || keeps_fp8_inputs(plan_)) return {};
  if (scales_rows(plan_)) return repeated(column_copy(elements), modules);
  const double largest = largest_bytes(plan_.fp8.recipe, false);
  if (largest == 0) return column_copy(elements);
  return joined({kernels_.stream(kCast, elements * largest)}, column_copy(elements));
}

Kernels KernelBook::cast_weight(const LinearShape& shape, bool backward) const {
  if (!shape.fp8 || !casts_weights_each_time(plan_)) return {};
  const auto elements = static_cast<double>(shape.in * shape.out);
  if (backward && scales_rows(plan_)) return column_copy(elements);
  return {kernels_.stream(kCast, elements * cast_bytes(plan_.fp8.recipe, 1, false))};
}

Kernels KernelBook::rescaled(const LinearShape& shape, double elements) const {
  if (!shape.fp8 || !scales_rows(plan_)) return {};
  return {pass("scales of rows", elements, 4.0)};
}

}  // namespace trainsim::lowering
