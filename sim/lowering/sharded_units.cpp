// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/sharded_units.hpp"

#include <cmath>
#include <utility>

#include "sim/lowering/experts.hpp"

namespace trainsim::lowering {

using plan::BackwardPrefetch;
using program::Cause;
using program::CollectiveOp;
using program::MemoryCategory;
using program::Stream;

namespace {

/// Kernels of a pass that runs beside `communication` seconds of collectives.
Pass slowed(Pass pass, Seconds communication, const cost::KernelModel& kernels) {
  Seconds total = 0;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) total += kernel.seconds;
  }
  if (total <= 0) return pass;
  const double factor = kernels.slowdown_beside(total, communication);
  for (Step& step : pass) {
    for (program::Kernel& kernel : step.kernels) kernel.seconds *= factor;
  }
  return pass;
}

/// Bytes in which a layer's, or a unit's, parameters are gathered: those that all data-parallel ranks share,
/// and those of experts.
double shared_bytes(const plan::ParallelPlan& plan, const UnitLayer& sizes) {
  return gathered_parameter_bytes(plan, static_cast<double>(sizes.shared), sizes.fp8.shared);
}
double expert_bytes(const plan::ParallelPlan& plan, const UnitLayer& sizes) {
  return gathered_parameter_bytes(plan, static_cast<double>(sizes.experts), sizes.fp8.experts);
}

/// Bytes of a unit's whole gradients as they are added up and sent.
Bytes gradient_bytes(const plan::ParallelPlan& plan, const UnitLayer& sizes) {
  return (sizes.trained + sizes.experts) * plan.gradient_bytes;
}

Seconds time_of(const RingEstimate& ring, CollectiveOp op, std::int64_t ranks, double bytes) {
  return ranks > 1 && bytes > 0 ? ring.time(op, ranks, bytes) : 0;
}

Seconds gather_time(const plan::ParallelPlan& plan, const UnitLayer& layer, const UnitRings& rings) {
  return time_of(rings.shared, CollectiveOp::kAllGather, plan.shard_ranks(), shared_bytes(plan, layer)) +
         time_of(rings.experts, CollectiveOp::kAllGather, plan.expert_shard_ranks(),
                 expert_bytes(plan, layer));
}

Seconds scatter_time(const plan::ParallelPlan& plan, const UnitLayer& layer, const UnitRings& rings) {
  const auto bytes = [&plan](std::int64_t parameters) {
    return static_cast<double>(parameters * plan.gradient_bytes);
  };
  return time_of(rings.shared, CollectiveOp::kReduceScatter, plan.shard_ranks(), bytes(layer.trained)) +
         time_of(rings.experts, CollectiveOp::kReduceScatter, plan.expert_shard_ranks(),
                 bytes(layer.experts));
}

/// Whether several micro-batches are in flight, so that gradients are added up before they are scattered.
bool adds_up(const plan::ParallelPlan& plan) {
  const bool several = plan.pipeline_parallel > 1 || plan.schedule == plan::ScheduleKind::kGpipe;
  return several && plan.framework == plan::Framework::kFsdp;
}

bool slows(const plan::ParallelPlan& plan) {
  return plan.works_by_units() && plan.profile.empty();
}

}  // namespace

UnitLayer unit_layer(const model::ModelSpec& model, const plan::ParallelPlan& plan, model::LayerKind kind) {
  const std::int64_t experts =
      kind == model::LayerKind::kExpert ? expert_parameters_per_rank(model, plan) : 0;
  return {layer_parameters_per_rank(model, plan, kind) - experts,
          trained_layer_parameters_per_rank(model, plan, kind) - experts, experts,
          fp8_layer_parameters(model, plan, kind)};
}

Pass beside_forward_transfers(Pass pass, const plan::ParallelPlan& plan, const UnitLayer& layer,
                              const UnitRings& rings, const cost::KernelModel& kernels) {
  // GPipe's forwards follow each other, and each drops what it has gathered.
  const bool each = plan.sharding == plan::Sharding::kZero3 && plan.schedule == plan::ScheduleKind::kGpipe;
  if (!slows(plan) || (adds_up(plan) && !each)) return pass;
  return slowed(std::move(pass), gather_time(plan, layer, rings), kernels);
}

Pass beside_backward_transfers(Pass pass, const plan::ParallelPlan& plan, const UnitLayer& layer,
                               const UnitRings& rings, const cost::KernelModel& kernels) {
  if (!slows(plan)) return pass;
  Seconds time = 0;
  if (plan.overlap_gradient_reduction && !adds_up(plan)) time += scatter_time(plan, layer, rings);
  const bool ahead = plan.units.gathered > 1 && plan.units.backward_prefetch == BackwardPrefetch::kPre;
  const bool once = adds_up(plan) && plan.schedule == plan::ScheduleKind::kGpipe;
  if (plan.sharding == plan::Sharding::kZero3 && ahead && !once) time += gather_time(plan, layer, rings);
  return slowed(std::move(pass), time, kernels);
}

ShardedUnits::ShardedUnits(const plan::ParallelPlan& plan, const Chunk& chunk, Emitter& emit, HostSide& host)
    : plan_(plan),
      emit_(emit),
      host_(host),
      exchange_(plan, emit),
      active_(plan.works_by_units()),
      adds_up_(adds_up(plan)) {
  if (!active_) return;
  root_.sizes = {chunk.root, trained_of(chunk.root, plan), 0, {}};
  name(root_, chunk.prefix + "embedding and head");
  cut(chunk);
}

void ShardedUnits::cut(const Chunk& chunk) {
  std::int64_t layers = 0;
  std::int64_t parameters = 0;
  const plan::ShardUnits& cuts = plan_.units;
  for (std::size_t layer = 0; layer < chunk.layers.size(); ++layer) {
    const bool full = cuts.parameters > 0 ? parameters >= cuts.parameters : layers >= cuts.layers;
    if (layer == 0 || full) {
      Unit& unit = units_.emplace_back();
      unit.first_layer = chunk.first_layer + static_cast<std::int64_t>(layer);
      name(unit, chunk.prefix + "unit " + std::to_string(units_.size() - 1));
      layers = parameters = 0;
    }
    const UnitLayer& sizes = chunk.layers[layer];
    UnitLayer& sum = units_.back().sizes;
    sum.shared += sizes.shared;
    sum.trained += sizes.trained;
    sum.experts += sizes.experts;
    sum.fp8 += sizes.fp8;
    ++layers;
    parameters += sizes.shared + sizes.experts;
    unit_of_.push_back(units() - 1);
  }
}

void ShardedUnits::name(Unit& unit, const std::string& owner) {
  unit.parameters = emit_.tensor(owner + ": gathered parameters");
  unit.gradients = emit_.tensor(owner + ": whole gradients");
  unit.scattered = emit_.tensor(owner + ": gradients being scattered");
  // On the stream of gathers.
  if (plan_.shards_each_weight()) emit_.mark_side(unit.parameters);
  if (!adds_up_) return;
  unit.sums = emit_.tensor(owner + ": sums of gradients");
  for (const std::uint32_t tensor : {unit.parameters, unit.sums}) emit_.mark_lasting(tensor);
}

Bytes ShardedUnits::gathered_bytes(const Unit& unit) const {
  if (!gathers_memory()) return 0;
  // FSDP casts what it holds in fp32 even where one rank has all of it.
  const bool casts = plan_.framework == plan::Framework::kFsdp;
  double bytes = 0;
  if (casts || plan_.shard_ranks() > 1) bytes += shared_bytes(plan_, unit.sizes);
  if (casts || plan_.expert_shard_ranks() > 1) bytes += expert_bytes(plan_, unit.sizes);
  return std::llround(bytes);
}

Bytes ShardedUnits::whole_gradient_bytes(const Unit& unit) const {
  return (unit.sizes.trained + unit.sizes.experts) * plan_.element_bytes();
}

void ShardedUnits::make_room(Unit& unit) {
  if (unit.state != State::kNothing) return;
  unit.state = State::kRoom;
  emit_.allocate(MemoryCategory::kCommunicationBuffers, unit.parameters, gathered_bytes(unit));
}

void ShardedUnits::drop(Unit& unit) {
  unit.state = State::kNothing;
  emit_.free(MemoryCategory::kCommunicationBuffers, unit.parameters, gathered_bytes(unit));
}

void ShardedUnits::gather(Unit& unit, const std::uint32_t* after) {
  unit.state = State::kComing;
  if (host_.keeps_parameters()) {
    const double shard = static_cast<double>(unit.sizes.shared) / static_cast<double>(plan_.shard_ranks());
    emit_.wait(Stream::kData, host_.fetch_parameters(shard, after), Cause::kOffload);
  } else if (after != nullptr) {
    emit_.wait(Stream::kData, *after, Cause::kDataCommunication);
  }
  exchange_.gather(Stream::kData, shared_bytes(plan_, unit.sizes));
  exchange_.gather_experts(Stream::kData, expert_bytes(plan_, unit.sizes));
  unit.gathered = emit_.record(Stream::kData);
}

void ShardedUnits::await(Unit& unit) {
  if (unit.state != State::kComing) return;
  unit.state = State::kWhole;
  emit_.wait(Stream::kCompute, unit.gathered, gathering());
}

void ShardedUnits::begin_forward() {
  if (!active_) return;
  // Not before the gradients of the micro-batch before are complete; the host is that far only then.
  if (root_.state == State::kNothing) {
    make_room(root_);
    const std::uint32_t start = emit_.record(Stream::kCompute);
    gather(root_, &start);
  } else if (units() > 0 && at(0).state == State::kNothing) {
    start_ = emit_.record(Stream::kCompute);
  }
  for (std::int64_t unit = 0; unit < std::min(units(), plan_.units.gathered - 1); ++unit) make_room(at(unit));
  await(root_);
}

void ShardedUnits::before_forward(std::int64_t layer) {
  if (!active_ || !begins_unit(layer)) return;
  const std::int64_t index = unit_of(layer);
  const std::int64_t gathered = plan_.units.gathered;
  // What is gathered ahead of the one at hand is gathered meanwhile.
  if (index + gathered - 1 < units()) make_room(at(index + gathered - 1));
  Unit& unit = at(index);
  if (unit.state == State::kRoom) {
    const std::uint32_t* start = start_ ? &*start_ : nullptr;
    gather(unit, index >= gathered ? &at(index - gathered).computed : start);
    start_.reset();
  }
  await(unit);
}

void ShardedUnits::after_forward(std::int64_t layer) {
  if (!active_ || !ends_unit(layer)) return;
  Unit& unit = at(unit_of(layer));
  unit.computed = emit_.record(Stream::kCompute);
  if (again_in_backward()) drop(unit);
}

void ShardedUnits::gather_again(Unit& unit) {
  if (unit.state != State::kNothing) return;
  const std::uint32_t start = emit_.record(Stream::kCompute);
  make_room(unit);
  const std::int64_t layer = emit_.layer();
  emit_.enter_layer(unit.first_layer);
  gather(unit, &start);
  emit_.enter_layer(layer);
}

void ShardedUnits::begin_backward(std::int64_t micro_batch, bool completes) {
  if (!active_) return;
  adds_ = micro_batch > 0;
  completes_ = completes;
  allocate_gradients(root_);
  if (units() > 0 && again_in_backward() && prefetches(BackwardPrefetch::kPre)) gather_again(at(units() - 1));
}

void ShardedUnits::before_backward(std::int64_t layer) {
  if (!active_ || !ends_unit(layer)) return;
  const std::int64_t index = unit_of(layer);
  Unit& unit = at(index);
  if (again_in_backward()) {
    gather_again(unit);
    if (index > 0 && prefetches(BackwardPrefetch::kPre)) gather_again(at(index - 1));
    await(unit);
  }
  allocate_gradients(unit);
}

void ShardedUnits::after_backward(std::int64_t layer) {
  if (!active_ || !begins_unit(layer)) return;
  const std::int64_t index = unit_of(layer);
  Unit& unit = at(index);
  const bool early = again_in_backward() && prefetches(BackwardPrefetch::kPost);
  if (early) {
    if (!adds_up_) drop(unit);
    if (index > 0) gather_again(at(index - 1));
  }
  if (adds_up_) {
    add_up(unit);
    return;
  }
  scatter(unit);
  if (!early) drop(unit);
}

void ShardedUnits::end_backward() {
  if (!active_) return;
  // The embedding's gradient comes last, and that of the head waits for it.
  if (adds_up_) {
    add_up(root_);
    if (!completes_) return;
    for (std::int64_t unit = units() - 1; unit >= 0; --unit) {
      scatter(at(unit));
      drop(at(unit));
    }
  }
  scatter(root_);
  drop(root_);
  free_handed_over();
}

void ShardedUnits::allocate_gradients(Unit& unit) {
  emit_.allocate(MemoryCategory::kGradients, unit.gradients, whole_gradient_bytes(unit));
}

void ShardedUnits::add_up(Unit& unit) {
  if (!adds_) emit_.allocate(MemoryCategory::kGradients, unit.sums, gradient_bytes(plan_, unit.sizes));
  emit_.free(MemoryCategory::kGradients, unit.gradients, whole_gradient_bytes(unit));
}

void ShardedUnits::scatter(Unit& unit) {
  free_handed_over();
  const UnitLayer& sizes = unit.sizes;
  handed_over_unit_ = &unit;
  handed_over_ = gradient_bytes(plan_, sizes);
  emit_.allocate(MemoryCategory::kCommunicationBuffers, unit.scattered, handed_over_);
  if (adds_up_) {
    emit_.free(MemoryCategory::kGradients, unit.sums, handed_over_);
  } else {
    emit_.free(MemoryCategory::kGradients, unit.gradients, whole_gradient_bytes(unit));
  }
  if (sizes.trained + sizes.experts == 0) return;
  const std::uint32_t ready = emit_.record(Stream::kCompute);
  emit_.wait(Stream::kData, ready, Cause::kDataCommunication);
  exchange_.reduce(Stream::kData, static_cast<double>(sizes.trained * plan_.gradient_bytes));
  exchange_.reduce_experts(Stream::kData, static_cast<double>(sizes.experts * plan_.gradient_bytes));
  scattered_.push_back(emit_.record(Stream::kData));
  const double shard = static_cast<double>(sizes.trained) / static_cast<double>(plan_.shard_ranks());
  host_.copy_gradients(shard, Stream::kData, adds_ && !adds_up_);
  if (!plan_.overlap_gradient_reduction) finish();
}

void ShardedUnits::free_handed_over() {
  if (handed_over_unit_ == nullptr) return;
  emit_.free(MemoryCategory::kCommunicationBuffers, handed_over_unit_->scattered, handed_over_);
  handed_over_unit_ = nullptr;
}

void ShardedUnits::finish() {
  if (!scattered_.empty()) emit_.wait(Stream::kCompute, scattered_.back(), Cause::kDataCommunication);
}

}  // namespace trainsim::lowering
