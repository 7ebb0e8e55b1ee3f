// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/lowering/experts.hpp"
#include "sim/lowering/tape.hpp"

namespace trainsim::lowering {

/// How the operations of routed experts are run again for backward: all but the activation, and that.
struct ExpertRepeat {
  Repeat all = Repeat::kNever;
  Repeat activation = Repeat::kNever;
};

/// Adds the operations of routed experts to a layer's tape, as Megatron-LM's all-to-all dispatcher and
/// grouped multiplies have them; `residual` are the bytes of a rank's part of the residual stream. `widened`
/// says whether a gated activation keeps its activated gate. Returns their output.
TensorId add_routed_experts(Tape& tape, TensorId input, const ExpertShapes& shapes, Bytes residual,
                            const ExpertRepeat& repeat, bool widened, const plan::ParallelPlan& plan);

}  // namespace trainsim::lowering
