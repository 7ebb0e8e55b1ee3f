// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/stage.hpp"

#include <algorithm>
#include <numeric>

#include "sim/lowering/experts.hpp"
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/lower.hpp"

namespace trainsim::lowering {

using program::Cause;
using program::CollectiveOp;
using program::GroupKind;
using program::PeerKind;
using program::Stream;
using schedule::Slot;
using schedule::SlotKind;

namespace {

/// Host work of a pipeline transfer that is not overlapped, in kernel launches: buffers, the call itself,
/// waiting and the schedule around it. Ours; 0.5 ms in eager mode.
constexpr int kTransferLaunches = 8;

/// Names of a layer's tensors begin with its number in the model.
std::vector<std::vector<TapeEmitter>> layer_memory(const StageContext& context, const LayerKinds& kinds,
                                                   std::int64_t stage, Emitter& emit) {
  std::vector<std::vector<TapeEmitter>> memory(static_cast<std::size_t>(context.schedule.chunks));
  for (std::size_t chunk = 0; chunk < memory.size(); ++chunk) {
    const auto place =
        static_cast<std::size_t>(context.schedule.virtual_stage(stage, static_cast<std::int64_t>(chunk)));
    const std::int64_t first = context.first_layer(place);
    for (std::int64_t layer = 0; layer < context.layers[place]; ++layer) {
      const auto kind = static_cast<std::size_t>(context.model.kind_of(first + layer));
      memory[chunk].emplace_back(kinds.memory[kind], "layer " + std::to_string(first + layer) + ": ", emit);
    }
  }
  return memory;
}

}  // namespace

std::int64_t StageContext::first_layer(std::size_t virtual_stage) const {
  const auto begin = layers.begin();
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(virtual_stage), std::int64_t{0});
}

StageLowering::StageLowering(const StageContext& context, std::int64_t stage, program::Program& program)
    : context_(context),
      stage_(stage),
      emit_(program, context.kernels),
      exchange_(context.plan, emit_),
      host_(context.plan, context.host, emit_),
      layer_parameters_(trained_layer_parameters_per_rank(context.model, context.plan)),
      expert_parameters_(expert_parameters_per_rank(context.model, context.plan)),
      units_(sharded_units()),
      checkpointing_(context.plan.recompute, context.schedule, stage),
      layers_(register_layers(context.layer)),
      whole_layers_(context.whole_layer ? register_layers(*context.whole_layer) : Layers{}),
      activations_(context.plan, layers_of(0), layers_.memory.front(), host_, emit_),
      embedding_forward_(emit_.register_pass(context.ends.embedding_forward)),
      embedding_backward_(emit_.register_pass(context.ends.embedding_backward)),
      head_forward_(emit_.register_pass(context.ends.head_forward)),
      head_backward_(emit_.register_pass(context.ends.head_backward)),
      head_weights_(emit_.register_pass(context.ends.head_weights)),
      embedding_memory_(context.embedding_memory, "", emit_),
      head_memory_(context.head_memory, "", emit_) {
  program.messages = static_cast<std::uint32_t>(2 * context.schedule.chunks * context.schedule.micro_batches);
}

StageLowering::Layers StageLowering::register_layers(const LayerKinds& kinds) {
  Layers layers;
  layers.passes.reserve(kinds.passes.size());
  const plan::ParallelPlan& plan = context_.plan;
  for (const LayerPasses& layer : kinds.passes) {
    const UnitLayer sizes =
        unit_layer(context_.model, plan, static_cast<model::LayerKind>(layers.passes.size()));
    RegisteredPass forward = emit_.register_pass(
        beside_forward_transfers(layer.forward, plan, sizes, context_.unit_rings, context_.kernels));
    RegisteredPass backward = emit_.register_pass(
        beside_backward_transfers(layer.backward, plan, sizes, context_.unit_rings, context_.kernels));
    RegisteredPass weights = emit_.register_pass(layer.weights);
    layers.passes.push_back(
        {std::move(forward), std::move(backward), std::move(weights), emit_.register_pass(layer.recompute)});
  }
  layers.memory = layer_memory(context_, kinds, stage_, emit_);
  return layers;
}

std::vector<ShardedUnits> StageLowering::sharded_units() {
  const plan::ParallelPlan& plan = context_.plan;
  std::vector<ShardedUnits> units;
  units.reserve(static_cast<std::size_t>(context_.schedule.chunks));
  for (std::int64_t chunk = 0; chunk < context_.schedule.chunks; ++chunk) {
    ShardedUnits::Chunk part;
    part.first_layer = first_layer_of(chunk);
    if (context_.schedule.chunks > 1) part.prefix = "chunk " + std::to_string(chunk) + ", ";
    for (std::int64_t layer = 0; layer < layers_of(chunk); ++layer) {
      part.layers.push_back(
          unit_layer(context_.model, plan, context_.model.kind_of(part.first_layer + layer)));
    }
    if (is_first(chunk)) part.root += embedding_parameters_per_rank(context_.model, plan);
    if (is_last(chunk))
      part.root += head_parameters_per_rank(context_.model, plan, plan.pipeline_parallel > 1);
    units.emplace_back(plan, part, emit_, host_);
  }
  return units;
}

std::int64_t StageLowering::shared_parameters_of(std::int64_t layer) const {
  if (context_.model.kind_of(layer) == model::LayerKind::kDense) return layer_parameters_;
  return layer_parameters_per_rank(context_.model, context_.plan, model::LayerKind::kExpert) -
         expert_parameters_;
}

std::uint32_t StageLowering::message(bool forward, std::int64_t micro_batch, std::int64_t chunk) const {
  const std::int64_t direction = forward ? 0 : context_.schedule.chunks;
  return static_cast<std::uint32_t>((direction + chunk) * context_.schedule.micro_batches + micro_batch);
}

void StageLowering::lower() {
  emit_state();
  if (gathers_under_forward()) emit_parameter_gathers();
  const std::vector<Slot>& slots = context_.schedule.slots[static_cast<std::size_t>(stage_)];
  std::vector<std::size_t> last(static_cast<std::size_t>(context_.schedule.chunks), 0);
  const SlotKind completing = context_.plan.splits_backward() ? SlotKind::kWeight : SlotKind::kBackward;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == completing) last[static_cast<std::size_t>(slots[i].chunk)] = i;
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    emit_slot(slots[i], last[static_cast<std::size_t>(slots[i].chunk)] == i);
  }
  emit_step_end();
}

void StageLowering::emit_state() {
  emit_.make_first(initial_weights(context_.model, context_.plan, stage_));
  for (const StateTensor& tensor : state_tensors(context_.model, context_.plan, stage_)) {
    if (tensor.place != StatePlace::kDevice) continue;
    const std::uint32_t id = emit_.tensor(tensor.name);
    emit_.allocate(tensor.category, id, tensor.bytes);
    if (tensor.made_in_step) emit_.mark_late(id);
  }
}

/// A chunk without layers still holds the embedding or the head, and counts as one.
void StageLowering::emit_parameter_gathers() {
  const plan::ParallelPlan& plan = context_.plan;
  const bool copy = plan.pipeline_parallel > 1;
  for (std::int64_t chunk = 0; chunk < context_.schedule.chunks; ++chunk) {
    const std::int64_t layers = std::max<std::int64_t>(1, layers_of(chunk));
    std::vector<std::uint32_t>& ready = parameters_ready_.emplace_back();
    std::int64_t bucket =
        is_first(chunk) ? trained_of(embedding_parameters_per_rank(context_.model, plan), plan) : 0;
    std::int64_t experts = 0;
    Fp8Parameters fp8;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      if (layers_of(chunk) > 0) {
        const std::int64_t index = first_layer_of(chunk) + layer;
        bucket += shared_parameters_of(index);
        experts += expert_parameters_of(index);
        fp8 += fp8_layer_parameters(context_.model, plan, context_.model.kind_of(index));
      }
      const bool last = layer + 1 == layers;
      if (last && is_last(chunk))
        bucket += trained_of(head_parameters_per_rank(context_.model, plan, copy), plan);
      if (!last && bucket + experts < plan.bucket_parameters) continue;
      exchange_.gather(Stream::kData,
                       gathered_parameter_bytes(plan, static_cast<double>(bucket), fp8.shared));
      exchange_.gather_experts(Stream::kData,
                               gathered_parameter_bytes(plan, static_cast<double>(experts), fp8.experts));
      ready.resize(static_cast<std::size_t>(layer + 1), emit_.record(Stream::kData));
      bucket = experts = 0;
      fp8 = {};
    }
  }
}

void StageLowering::await_parameters(const Slot& slot, std::int64_t layer) {
  if (parameters_ready_.empty() || slot.micro_batch > 0) return;
  const std::vector<std::uint32_t>& ready = parameters_ready_[static_cast<std::size_t>(slot.chunk)];
  const auto index = static_cast<std::size_t>(layer);
  if (index > 0 && ready[index] == ready[index - 1]) return;
  emit_.wait(Stream::kCompute, ready[index], Cause::kDataCommunication);
}

void StageLowering::emit_slot(const Slot& slot, bool completes) {
  emit_.enter_slot();
  emit_arrival(slot);
  switch (slot.kind) {
    case SlotKind::kForward:
      emit_.begin_slot('F', slot.micro_batch, slot.chunk);
      emit_forward(slot);
      break;
    case SlotKind::kBackward:
      emit_.begin_slot('B', slot.micro_batch, slot.chunk);
      emit_backward(slot, completes);
      break;
    case SlotKind::kWeight:
      emit_.begin_slot('W', slot.micro_batch, slot.chunk);
      emit_weights(slot, completes);
      break;
  }
  emit_.end_slot();
  emit_transfer(slot);
  emit_.leave_slot();
}

/// Waits for the slot's input. Without sequence parallelism the message holds 1/t of the tensor, and the
/// ranks of the stage gather the rest from each other (Narayanan et al. 2021, section 4.1).
void StageLowering::emit_arrival(const Slot& slot) {
  if (slot.kind == SlotKind::kWeight) return;
  const bool forward = slot.kind == SlotKind::kForward;
  if (forward ? is_first(slot.chunk) : is_last(slot.chunk)) return;
  emit_.receive(message(forward, slot.micro_batch, slot.chunk));
  const Shapes& shapes = context_.shapes;
  if (shapes.tensor_parallel > 1 && !shapes.sequence_parallel && context_.plan.scatter_gather_transfers) {
    emit_.collective(Stream::kCompute, GroupKind::kTensor, CollectiveOp::kAllGather,
                     static_cast<double>(shapes.residual_bytes()), Cause::kPipelineCommunication);
  }
  // Megatron-LM synchronises with the GPU after transfers that it does not overlap.
  if (!context_.plan.overlap_point_to_point) emit_.synchronize(kTransferLaunches);
}

void StageLowering::emit_transfer(const Slot& slot) {
  if (slot.kind == SlotKind::kWeight) return;
  const bool forward = slot.kind == SlotKind::kForward;
  if (forward ? is_last(slot.chunk) : is_first(slot.chunk)) return;
  const Shapes& shapes = context_.shapes;
  const std::int64_t target = virtual_stage(slot.chunk) + (forward ? 1 : -1);
  const bool split = shapes.sequence_parallel || context_.plan.scatter_gather_transfers;
  const double bytes =
      static_cast<double>(shapes.residual_bytes()) / static_cast<double>(split ? shapes.tensor_parallel : 1);
  const std::uint32_t to = message(forward, slot.micro_batch, context_.schedule.chunk_of(target));
  const PeerKind peer = forward ? PeerKind::kNextStage : PeerKind::kPreviousStage;
  if (!context_.plan.overlap_point_to_point) {
    emit_.send(Stream::kCompute, peer, to, bytes);
    return;
  }
  const std::uint32_t ready = emit_.record(Stream::kCompute);
  emit_.wait(Stream::kSend, ready, Cause::kPipelineCommunication);
  emit_.send(Stream::kSend, peer, to, bytes);
}

void StageLowering::emit_forward(const Slot& slot) {
  units_of(slot).begin_forward();
  await_parameters(slot, 0);
  if (is_first(slot.chunk)) {
    embedding_memory_.forward(Keep::kAll);
    emit_.emit(embedding_forward_);
  }
  emit_layers_forward(slot);
  if (is_last(slot.chunk)) {
    head_memory_.forward(Keep::kAll);
    emit_.emit(head_forward_);
  }
}

void StageLowering::emit_layers_forward(const Slot& slot) {
  for (std::int64_t layer = 0; layer < layers_of(slot.chunk); ++layer) {
    emit_.enter_layer(first_layer_of(slot.chunk) + layer);
    if (layer > 0) await_parameters(slot, layer);
    units_of(slot).before_forward(layer);
    memory_of(slot, layer).forward(checkpointing_.kept(slot, layer));
    emit_.emit(passes_of(slot, layer).forward);
    activations_.after_forward(layer);
    units_of(slot).after_forward(layer);
  }
  emit_.enter_layer(Emitter::kNoLayer);
}

void StageLowering::emit_backward(const Slot& slot, bool completes) {
  units_of(slot).begin_backward(slot.micro_batch, completes);
  if (is_last(slot.chunk)) emit_head_backward(completes);
  emit_layers_backward(slot, completes);
  if (is_first(slot.chunk)) {
    embedding_memory_.backward();
    emit_.emit(embedding_backward_);
    embedding_gradients_ready(completes);
  }
  units_of(slot).end_backward();
  if (completes) flush_buckets();
}

void StageLowering::emit_head_backward(bool completes) {
  if (context_.plan.splits_backward()) {
    head_memory_.input_gradients();
  } else {
    head_memory_.backward();
  }
  emit_.emit(head_backward_);
  head_gradients_ready(completes);
}

/// In the order of backward. The embedding has no gradient but its weight's, which backward has made.
void StageLowering::emit_weights(const Slot& slot, bool completes) {
  if (is_last(slot.chunk)) {
    head_memory_.weight_gradients();
    emit_.emit(head_weights_);
    head_gradients_ready(completes);
  }
  const std::int64_t first = first_layer_of(slot.chunk);
  for (std::int64_t layer = layers_of(slot.chunk) - 1; layer >= 0; --layer) {
    emit_.enter_layer(first + layer);
    memory_of(slot, layer).weight_gradients();
    emit_.emit(passes_of(slot, layer).weights);
    layer_gradients_ready(first + layer, completes);
  }
  emit_.enter_layer(Emitter::kNoLayer);
  if (is_first(slot.chunk)) embedding_gradients_ready(completes);
  if (completes) flush_buckets();
}

void StageLowering::head_gradients_ready(bool completes) {
  const bool copy = context_.plan.pipeline_parallel > 1;
  gradients_ready(trained_of(head_parameters_per_rank(context_.model, context_.plan, copy), context_.plan), 0,
                  completes);
}

void StageLowering::embedding_gradients_ready(bool completes) {
  gradients_ready(trained_of(embedding_parameters_per_rank(context_.model, context_.plan), context_.plan), 0,
                  completes);
}

void StageLowering::layer_gradients_ready(std::int64_t layer, bool completes) {
  gradients_ready(shared_parameters_of(layer), expert_parameters_of(layer), completes);
}

void StageLowering::flush_buckets() {
  flush_expert_bucket();
  flush_bucket();
}

void StageLowering::emit_layers_backward(const Slot& slot, bool completes) {
  const bool split = context_.plan.splits_backward();
  const std::int64_t first = first_layer_of(slot.chunk);
  std::int64_t end = layers_of(slot.chunk);
  while (end > 0) {
    // A group is what one checkpoint brings back: the layers up to the nearest kept input.
    std::int64_t begin = end - 1;
    const bool again = checkpointing_.kept(slot, begin) != Keep::kAll;
    while (checkpointing_.kept(slot, begin) == Keep::kNothing) --begin;
    emit_.enter_layer(first + begin);
    for (std::int64_t layer = end - 1; layer >= begin; --layer) activations_.before_backward(layer);
    // With units of their own, groups are single layers.
    units_of(slot).before_backward(begin);
    if (again) {
      for (std::int64_t layer = begin; layer < end; ++layer) {
        emit_.enter_layer(first + layer);
        memory_of(slot, layer).again(layer == begin);
        emit_.emit(passes_of(slot, layer).recompute);
      }
    }
    for (std::int64_t layer = end - 1; layer >= begin; --layer) {
      emit_.enter_layer(first + layer);
      TapeEmitter& memory = memory_of(slot, layer);
      split ? memory.input_gradients() : memory.backward();
      emit_.emit(passes_of(slot, layer).backward);
      layer_gradients_ready(first + layer, completes);
    }
    units_of(slot).after_backward(begin);
    end = begin;
  }
  emit_.enter_layer(Emitter::kNoLayer);
}

void StageLowering::gradients_ready(std::int64_t parameters, std::int64_t experts, bool completes) {
  if (!completes || context_.plan.works_by_units()) return;
  expert_bucket_ += experts;
  bucket_ += parameters;
  if (!context_.plan.overlap_gradient_reduction) return;
  if (expert_bucket_ >= context_.plan.bucket_parameters) flush_expert_bucket();
  if (bucket_ >= context_.plan.bucket_parameters) flush_bucket();
}

void StageLowering::flush_expert_bucket() {
  const plan::ParallelPlan& plan = context_.plan;
  if (expert_bucket_ == 0 || !plan.overlap_gradient_reduction || plan.expert_data_parallel() < 2) return;
  const std::uint32_t ready = emit_.record(Stream::kCompute);
  emit_.wait(Stream::kData, ready, Cause::kDataCommunication);
  exchange_.reduce_experts(Stream::kData, static_cast<double>(expert_bucket_ * plan.gradient_bytes));
  reductions_.push_back(emit_.record(Stream::kData));
  expert_bucket_ = 0;
}

void StageLowering::flush_bucket() {
  const plan::ParallelPlan& plan = context_.plan;
  const bool moves = plan.data_context_ranks() > 1 || host_.updates();
  if (bucket_ == 0 || !plan.overlap_gradient_reduction || !moves) return;
  const std::uint32_t ready = emit_.record(Stream::kCompute);
  emit_.wait(Stream::kData, ready, Cause::kDataCommunication);
  exchange_.reduce(Stream::kData, static_cast<double>(bucket_ * plan.gradient_bytes));
  reductions_.push_back(emit_.record(Stream::kData));
  host_.copy_gradients(static_cast<double>(bucket_) / static_cast<double>(plan.shard_ranks()), Stream::kData,
                       false);
  bucket_ = 0;
}

void StageLowering::emit_step_end() {
  const plan::ParallelPlan& plan = context_.plan;
  const bool zero1 = plan.sharding == plan::Sharding::kZero1;
  const auto experts = static_cast<double>(stage_expert_parameters(context_.model, plan, stage_));
  const auto held = static_cast<double>(trained_stage_parameters(context_.model, plan, stage_)) - experts;
  if (plan.works_by_units()) {
    for (ShardedUnits& units : units_) units.finish();
  } else if (!reductions_.empty()) {
    emit_.wait(Stream::kCompute, reductions_.back(), Cause::kDataCommunication);
  } else {
    exchange_.reduce(Stream::kCompute, held * static_cast<double>(plan.gradient_bytes));
    exchange_.reduce_experts(Stream::kCompute, experts * static_cast<double>(plan.gradient_bytes));
    host_.copy_gradients(held / static_cast<double>(plan.shard_ranks()), Stream::kCompute, false);
  }
  const bool at_end = stage_ == 0 || stage_ == plan.pipeline_parallel - 1;
  const bool shared = context_.model.tie_word_embeddings && plan.pipeline_parallel > 1 && !plan.lora.active();
  if (shared && at_end) {
    const Shapes& shapes = context_.shapes;
    const auto bytes = static_cast<double>(shapes.vocab * shapes.hidden * plan.gradient_bytes);
    const auto shards = static_cast<double>(plan.works_by_units() ? plan.shard_ranks() : 1);
    emit_.collective(Stream::kCompute, GroupKind::kEmbedding, CollectiveOp::kAllReduce, bytes / shards,
                     Cause::kEmbeddingCommunication);
  }
  if (host_.updates()) {
    host_.update(held / static_cast<double>(plan.shard_ranks()));
  } else {
    emit_optimizer();
  }
  if (plan.deals_out_weights()) {
    for (const std::vector<std::int64_t>& weights : dealt_out(shared_weights(context_.model, plan, stage_)))
      exchange_.broadcast(Stream::kCompute, std::accumulate(weights.begin(), weights.end(), 0.0) *
                                                static_cast<double>(plan.element_bytes()));
  } else if (zero1 && !gathers_under_forward()) {
    const Fp8Parameters fp8 = fp8_stage_parameters(context_.model, plan, stage_);
    exchange_.gather(Stream::kCompute, gathered_parameter_bytes(plan, held, fp8.shared));
    exchange_.gather_experts(Stream::kCompute, gathered_parameter_bytes(plan, experts, fp8.experts));
  }
}

void StageLowering::emit_optimizer() {
  const plan::ParallelPlan& plan = context_.plan;
  const Owned shared = shared_weights(context_.model, plan, stage_);
  const Owned routed = expert_weights(context_.model, plan, stage_);
  std::vector<std::int64_t> pieces = shard_pieces(plan, shared);
  const std::vector<std::int64_t> more = shard_pieces(plan, routed);
  pieces.insert(pieces.end(), more.begin(), more.end());
  OptimizerBuffers buffers(plan, std::move(pieces), emit_);
  buffers.begin();
  Pass pass = stage_optimizer(context_.model, plan, context_.kernels, stage_);
  if (const Seconds measured = plan.profile.empty() ? 0 : plan.profile_of(stage_).optimizer; measured > 0) {
    pass = measured_pass("optimizer", pass, program::Cause::kOptimizer, program::KernelKind::kOptimizer,
                         measured);
  }
  emit_.emit(emit_.register_pass(pass));
  buffers.end();
}

Pass stage_optimizer(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                     const cost::KernelModel& kernels, std::int64_t stage) {
  const auto shard = static_cast<double>(fullest_shard(plan, shared_weights(model, plan, stage)) +
                                         fullest_shard(plan, expert_weights(model, plan, stage)));
  const auto held = static_cast<double>(trained_stage_parameters(model, plan, stage));
  const auto cast = static_cast<double>(fp8_copied_parameters(model, plan, stage));
  return optimizer_pass(plan, kernels, shard, plan.works_by_units() ? shard : held, cast);
}

}  // namespace trainsim::lowering
