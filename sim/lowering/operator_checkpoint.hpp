// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "sim/lowering/kernels.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/pass.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Multiplies of a dense layer whose outputs a checkpoint of operators saves. torchtitan's policy
/// (`_apply_ac_to_transformer_block` of models/llama3/infra/parallelize.py, 2025) saves every other aten.mm
/// in the order of the forward, from the first: queries, keys, values, output projection, gate, up, and out
/// of the MLP; those that are fused (plan.fused_linears) count as one. With biases they are aten.addmm, which
/// the policy makes again.
struct SavedMultiplies {
  SavedMultiplies(const model::ModelSpec& model, const plan::ParallelPlan& plan);

  bool queries = false;
  bool keys = false;
  bool values = false;
  bool attention_output = false;
  /// The MLP's first input: the gate, if it is gated.
  bool mlp_gate = false;
  /// Its other input: as the gate if both are one multiply; false without one.
  bool mlp_up = false;
  bool mlp_out = false;
};

/// Whether a checkpoint of operators saves what attention puts out: fused kernels are on torchtitan's list,
/// multiplies of a batch (aten.bmm) are not.
bool saves_attention(const model::ModelSpec& model);

/// What a checkpoint of operators runs again of a dense layer before its backward: norms, rotation, the
/// multiplies that are not saved, the first residual addition and the activation, with the gathers and
/// all-reduces between them; not the last multiply, whose input is all that backward needs. Reduce-scatters
/// are saved; a compiler leaves out the multiply before one, too.
Pass operators_again(const model::ModelSpec& model, const plan::ParallelPlan& plan, const KernelBook& book);

}  // namespace trainsim::lowering
