// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/lowering/layer.hpp"
#include "sim/lowering/tape.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Tensors of one transformer layer and micro-batch on one rank. With dropout, GPT shapes and 2-byte elements
/// what it keeps are the rows of Korthikanti et al. 2022, table 2; what else lives for a while is what
/// Megatron-LM or PyTorch allocate. Statistics of norms (8 bytes per token) are left out.
Tape layer_tape(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                model::LayerKind kind = model::LayerKind::kDense);
/// The same before the first layer: lookup, positions and dropout.
Tape embedding_tape(const model::ModelSpec& model, const plan::ParallelPlan& plan);
/// Whether cross-entropy is PyTorch's of logits that tensor-parallel ranks share
/// (torch.distributed.tensor.parallel.loss_parallel), written in single operations that nothing compiles.
bool has_parallel_loss(const plan::ParallelPlan& plan);
/// Whether it is PyTorch's of logits that each rank has for itself, with a log-softmax in fp32.
bool has_log_softmax(const plan::ParallelPlan& plan);
/// The same behind the last layer: final norm, logits and loss.
Tape head_tape(const model::ModelSpec& model, const plan::ParallelPlan& plan);

}  // namespace trainsim::lowering
