// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/lowering/activation_offload.hpp"
#include "sim/lowering/checkpointing.hpp"
#include "sim/lowering/data_exchange.hpp"
#include "sim/lowering/emitter.hpp"
#include "sim/lowering/ends.hpp"
#include "sim/lowering/host.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/sharded_units.hpp"
#include "sim/lowering/state.hpp"
#include "sim/lowering/tape_emitter.hpp"
#include "sim/schedule/schedule.hpp"

namespace trainsim::lowering {

/// Passes and memory of layers by their kind, as far as the model has them; a kind's number is its place.
struct LayerKinds {
  std::vector<LayerPasses> passes;
  std::vector<TapeTraces> memory;
};

/// Everything about a model and plan that all stages share.
struct StageContext {
  const model::ModelSpec& model;
  const plan::ParallelPlan& plan;
  const schedule::Schedule& schedule;
  const cost::KernelModel& kernels;
  Shapes shapes;
  LayerKinds layer;
  /// The same without selective recomputation, where some micro-batches leave it out.
  std::optional<LayerKinds> whole_layer;
  Ends ends;
  TapeTraces embedding_memory;
  TapeTraces head_memory;
  /// Layers of each virtual stage.
  std::vector<std::int64_t> layers;
  UnitRings unit_rings;
  HostShare host;

  /// Number in the model of the first layer of a virtual stage.
  std::int64_t first_layer(std::size_t virtual_stage) const;
};

/// Writes the program of one stage.
class StageLowering {
 public:
  StageLowering(const StageContext& context, std::int64_t stage, program::Program& program);
  /// Emits the whole step: state, slots, gradient exchange, optimizer.
  void lower();

 private:
  void emit_state();
  /// Gathers the parameters that the last step updated, in the order in which forward needs them.
  void emit_parameter_gathers();
  /// Lets the first micro-batch wait for the parameters of a layer.
  void await_parameters(const schedule::Slot& slot, std::int64_t layer);
  void emit_slot(const schedule::Slot& slot, bool completes);
  void emit_forward(const schedule::Slot& slot);
  /// `completes` says whether a slot is the last that adds to the gradients of its chunk.
  void emit_backward(const schedule::Slot& slot, bool completes);
  /// Weight gradients that backward has left for later.
  void emit_weights(const schedule::Slot& slot, bool completes);
  void emit_layers_forward(const schedule::Slot& slot);
  void emit_layers_backward(const schedule::Slot& slot, bool completes);
  void emit_head_backward(bool completes);
  void head_gradients_ready(bool completes);
  void embedding_gradients_ready(bool completes);
  void layer_gradients_ready(std::int64_t layer, bool completes);
  void emit_transfer(const schedule::Slot& slot);
  void emit_arrival(const schedule::Slot& slot);
  void emit_step_end();
  void emit_optimizer();
  /// Counts parameters whose gradients are complete, and starts a reduction when a bucket is full; those of
  /// routed experts, which fewer ranks hold, fill buckets of their own.
  void gradients_ready(std::int64_t parameters, std::int64_t experts, bool completes);
  void flush_buckets();
  void flush_bucket();
  void flush_expert_bucket();

  std::int64_t virtual_stage(std::int64_t chunk) const {
    return context_.schedule.virtual_stage(stage_, chunk);
  }
  bool gathers_under_forward() const {
    const plan::ParallelPlan& plan = context_.plan;
    return plan.overlap_parameter_gather &&
           (plan.data_context_ranks() > 1 || plan.expert_data_parallel() > 1);
  }
  bool is_first(std::int64_t chunk) const { return virtual_stage(chunk) == 0; }
  bool is_last(std::int64_t chunk) const {
    return virtual_stage(chunk) == context_.plan.virtual_stages() - 1;
  }
  std::int64_t layers_of(std::int64_t chunk) const {
    return context_.layers[static_cast<std::size_t>(virtual_stage(chunk))];
  }
  std::int64_t first_layer_of(std::int64_t chunk) const {
    return context_.first_layer(static_cast<std::size_t>(virtual_stage(chunk)));
  }
  std::uint32_t message(bool forward, std::int64_t micro_batch, std::int64_t chunk) const;

  const StageContext& context_;
  std::int64_t stage_;
  Emitter emit_;
  DataExchange exchange_;
  HostSide host_;
  /// Passes of a layer, by its kind.
  struct Passes {
    RegisteredPass forward;
    RegisteredPass backward;
    RegisteredPass weights;
    RegisteredPass recompute;
  };
  /// Layers ready to be emitted: passes by kind, memory by chunk and layer.
  struct Layers {
    std::vector<Passes> passes;
    std::vector<std::vector<TapeEmitter>> memory;
  };
  Layers register_layers(const LayerKinds& kinds);
  std::vector<ShardedUnits> sharded_units();
  ShardedUnits& units_of(const schedule::Slot& slot) { return units_[static_cast<std::size_t>(slot.chunk)]; }
  /// Layers as a slot runs number `layer` of its chunk.
  Layers& layers_as_run(const schedule::Slot& slot, std::int64_t layer) {
    return checkpointing_.leaves_out(slot, layer) ? whole_layers_ : layers_;
  }
  const Passes& passes_of(const schedule::Slot& slot, std::int64_t layer) {
    const model::LayerKind kind = context_.model.kind_of(first_layer_of(slot.chunk) + layer);
    return layers_as_run(slot, layer).passes[static_cast<std::size_t>(kind)];
  }
  TapeEmitter& memory_of(const schedule::Slot& slot, std::int64_t layer) {
    return layers_as_run(slot, layer)
        .memory[static_cast<std::size_t>(slot.chunk)][static_cast<std::size_t>(layer)];
  }
  /// Trained parameters of a layer that all data-parallel ranks share, and of its routed experts.
  std::int64_t shared_parameters_of(std::int64_t layer) const;
  std::int64_t expert_parameters_of(std::int64_t layer) const {
    return context_.model.kind_of(layer) == model::LayerKind::kExpert ? expert_parameters_ : 0;
  }

  /// Trained ones of a dense layer, and those of a layer's routed experts.
  std::int64_t layer_parameters_;
  std::int64_t expert_parameters_;
  /// By chunk.
  std::vector<ShardedUnits> units_;
  Checkpointing checkpointing_;
  Layers layers_;
  Layers whole_layers_;
  ActivationOffload activations_;
  RegisteredPass embedding_forward_;
  RegisteredPass embedding_backward_;
  RegisteredPass head_forward_;
  RegisteredPass head_backward_;
  RegisteredPass head_weights_;
  TapeEmitter embedding_memory_;
  TapeEmitter head_memory_;
  std::int64_t bucket_ = 0;
  std::int64_t expert_bucket_ = 0;
  std::vector<std::uint32_t> reductions_;
  /// By chunk and layer: when its parameters are gathered. Empty unless that happens under the forward.
  std::vector<std::vector<std::uint32_t>> parameters_ready_;
};

/// The modelled kernels of the optimizer on a stage's fullest rank.
Pass stage_optimizer(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                     const cost::KernelModel& kernels, std::int64_t stage);

}  // namespace trainsim::lowering
