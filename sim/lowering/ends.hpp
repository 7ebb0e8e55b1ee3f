// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/base/units.hpp"
#include "sim/cost/kernel_model.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/pass.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Passes and bytes of what sits before the first layer and after the last one.
struct Ends {
  Pass embedding_forward;
  Pass embedding_backward;
  /// Final norm, logits and loss.
  Pass head_forward;
  Pass head_backward;
  /// The output projection's weight gradient, where the schedule has slots for such.
  Pass head_weights;
};

Ends build_ends(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                const cost::KernelModel& kernels, const RingEstimate& ring);

/// Kernels of the optimizer step over `parameters` of this rank's shard, and of the gradient norm and
/// clearing over all `held` parameters: mixed-precision Adam. `cast` are those whose weights are cast to 8
/// bits for the steps' multiplies.
Pass optimizer_pass(const plan::ParallelPlan& plan, const cost::KernelModel& kernels, double parameters,
                    double held, double cast = 0);

}  // namespace trainsim::lowering
