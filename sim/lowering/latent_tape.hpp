// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/lowering/layer.hpp"
#include "sim/lowering/tape.hpp"

namespace trainsim::lowering {

/// What latent attention hands to its core, each with heads: queries with keys, and values.
struct LatentHeads {
  TensorId queries_and_keys = kNoTensor;
  TensorId values = kNoTensor;
};

/// Adds the operations of latent attention before its core, as Megatron-LM's MLASelfAttention has them:
/// latents are normalised, and rotated and other parts of heads are put together in new tensors.
LatentHeads add_latent_heads(Tape& tape, TensorId input, const model::ModelSpec& model,
                             const plan::ParallelPlan& plan);

}  // namespace trainsim::lowering
