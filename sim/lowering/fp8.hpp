// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

class Tape;
struct Operation;

/// Bytes of an element of an 8-bit tensor with its share of the scales: one of 1 byte for each 32 elements
/// with mxfp8, one of 4 bytes for each 128 with blockwise; the others have too few to count.
double fp8_element_bytes(plan::Fp8Recipe recipe);

/// Bytes for each element of a bf16 tensor that finding its largest one moves, where the scale is that of the
/// whole tensor. Whoever has just made the tensor (`at_hand`) finds it then.
double largest_bytes(plan::Fp8Recipe recipe, bool at_hand);

/// Bytes for each element that a kernel moves which makes 8-bit copies of a bf16 tensor: each copy is
/// written, the tensor is read, and before that for its largest element. A compiler that has just made it
/// (`at_hand`) need not read it again, if scales are known by then.
double cast_bytes(plan::Fp8Recipe recipe, int copies, bool at_hand);

/// Whether every row has a scale of its own (torchao's `rowwise`).
bool scales_rows(const plan::ParallelPlan& plan);

/// Bytes of gathered activations (sequence parallelism) relative to compute precision: they are cast before
/// they are sent, but for scales of rows, with which torchao gathers first.
double gathered_share(const plan::ParallelPlan& plan);

/// Whether a linear layer keeps its input in 8 bits for backward, as Transformer Engine does, rather than as
/// it got it, as torchao does.
bool keeps_fp8_inputs(const plan::ParallelPlan& plan);

/// Bytes of a linear layer's input of so many elements that is kept in 8 bits; 0 where it is kept as it is.
Bytes kept_fp8_bytes(const plan::ParallelPlan& plan, std::int64_t elements);

/// Keeps the first input of an operation for the gradient of its weight, or `copy` bytes in 8 bits instead,
/// if that is not 0.
void keep_input(Tape& tape, Operation& operation, Bytes copy);

/// Whether weights are cast in each forward and backward, as where they are gathered for it; else once a
/// step, and the copies stay.
bool casts_weights_each_time(const plan::ParallelPlan& plan);

/// Parameters of weights whose multiplies run in 8 bits, on one rank; 0 without fp8.
struct Fp8Parameters {
  /// All but those of routed experts, and these.
  std::int64_t shared = 0;
  std::int64_t experts = 0;
  std::int64_t total() const { return shared + experts; }
  Fp8Parameters& operator+=(const Fp8Parameters& more);
};
/// Those of a layer, and of all layers of a stage.
Fp8Parameters fp8_layer_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   model::LayerKind kind);
Fp8Parameters fp8_stage_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   std::int64_t stage);

/// Parameters of a rank of a stage whose weights are cast to 8 bits once a step, and whose copies, one for
/// each multiply, stay; 0 where there are none.
std::int64_t fp8_copied_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   std::int64_t stage);

/// Bytes in which so many parameters are gathered, `fp8` of which belong to weights in 8 bits.
double gathered_parameter_bytes(const plan::ParallelPlan& plan, double parameters, std::int64_t fp8);

}  // namespace trainsim::lowering
