// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/lowering/shards.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"

namespace trainsim::lowering {

/// Where a tensor is that lives as long as training does.
enum class StatePlace { kDevice, kHost, kDisk };

/// A tensor that lives as long as training does.
struct StateTensor {
  std::string name;
  program::MemoryCategory category = program::MemoryCategory::kParameters;
  Bytes bytes = 0;
  /// Whether it first appears in the first step, after its backward has begun.
  bool made_in_step = false;
  StatePlace place = StatePlace::kDevice;
};

/// Bytes of an fp32 optimizer's own state per parameter, without the fp32 parameter: two moments for Adam (8,
/// or 2 and a scale of 4 bytes for each of 256 in 8 bits, as bitsandbytes keeps them), one for Lion and
/// momentum (4), none for SGD; Adafactor's row and column sums are left out.
double moment_bytes(plan::Optimizer optimizer);

/// Trained weights on a rank of a stage but those of routed experts, and these. Small ones of a layer count
/// as one; InternEvo, which deals weights out, has two norms, and the two inputs of a gated MLP by
/// themselves.
Owned shared_weights(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage);
Owned expert_weights(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage);

/// Parameters, gradients, optimizer state and permanent buffers of a rank of a stage, on the device or where
/// they are offloaded to, as the plan's framework and sharding keep them (docs/modelling.md, "State"). The
/// moments, and Megatron-LM's master parameters, are tensors by weight, which is what the caching allocator
/// has to find room for.
std::vector<StateTensor> state_tensors(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                       std::int64_t stage);

/// Bytes of each weight of a rank of a stage as Megatron-LM makes it, before its distributed optimizer copies
/// all of them to one buffer (`param_and_grad_buffer.py`); none where there is no such buffer.
std::vector<Bytes> initial_weights(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   std::int64_t stage);

/// Host memory that the offloaded state of a rank of a stage takes.
Bytes host_state_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage);

/// That and offloaded activations of all ranks of the node where it is most; 0 when nothing is offloaded.
Bytes host_memory_of_fullest_node(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                  const hardware::ClusterSpec& cluster);

/// What a checkpoint holds of the whole model: trained parameters as the optimizer has them (in fp32, and in
/// compute precision too where both are kept) and the optimizer's moments. 14 bytes for each parameter with
/// Adam and mixed precision, 12 where fp32 parameters are all there is.
Bytes checkpoint_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan);

}  // namespace trainsim::lowering
