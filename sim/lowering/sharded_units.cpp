// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/sharded_units.hpp"

#include <utility>

namespace trainsim::lowering {

using program::Cause;
using program::CollectiveOp;
using program::MemoryCategory;
using program::Stream;

namespace {

/// Units that may be gathered at a time: FSDP's rate limiter.
constexpr std::int64_t kGatheredUnits = 2;

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

}  // namespace

ShardedUnits::ShardedUnits(const plan::ParallelPlan& plan, const Sizes& sizes, std::int64_t layers,
                           Emitter& emit)
    : plan_(plan),
      layer_(sizes.layer),
      trained_layer_(sizes.trained_layer),
      root_(sizes.root),
      trained_root_(trained_of(sizes.root, plan)),
      layers_(layers),
      emit_(emit),
      exchange_(plan, emit),
      active_(plan.shards_parameters()) {
  if (!active_) return;
  gathered_.resize(static_cast<std::size_t>(layers));
  computed_.resize(static_cast<std::size_t>(layers));
  root_tensors_ = name("embedding and head");
  layer_tensors_.reserve(static_cast<std::size_t>(layers));
  for (std::int64_t layer = 0; layer < layers; ++layer)
    layer_tensors_.push_back(name("unit " + std::to_string(layer)));
}

Pass ShardedUnits::beside_forward(Pass pass, const RingEstimate& ring,
                                  const cost::KernelModel& kernels) const {
  if (!active_ || plan_.profile) return pass;
  const auto bytes = static_cast<double>(layer_ * plan_.element_bytes());
  return slowed(std::move(pass), ring.time(CollectiveOp::kAllGather, plan_.shard_ranks(), bytes), kernels);
}

Pass ShardedUnits::beside_backward(Pass pass, const RingEstimate& ring,
                                   const cost::KernelModel& kernels) const {
  if (!active_ || plan_.profile) return pass;
  Seconds time = 0;
  if (plan_.overlap_gradient_reduction) {
    const auto bytes = static_cast<double>(trained_layer_ * plan_.gradient_bytes);
    time += ring.time(CollectiveOp::kReduceScatter, plan_.shard_ranks(), bytes);
  }
  if (again_in_backward()) {
    const auto bytes = static_cast<double>(layer_ * plan_.element_bytes());
    time += ring.time(CollectiveOp::kAllGather, plan_.shard_ranks(), bytes);
  }
  return slowed(std::move(pass), time, kernels);
}

ShardedUnits::Tensors ShardedUnits::name(const std::string& owner) {
  return {emit_.tensor(owner + ": gathered parameters"), emit_.tensor(owner + ": whole gradients"),
          emit_.tensor(owner + ": gradients being scattered")};
}

void ShardedUnits::allocate(std::int64_t unit) {
  if (!gathers_memory()) return;
  emit_.allocate(MemoryCategory::kCommunicationBuffers, tensors_of(unit).parameters,
                 parameters_of(unit) * plan_.element_bytes());
}

void ShardedUnits::free(std::int64_t unit) {
  if (!gathers_memory()) return;
  emit_.free(MemoryCategory::kCommunicationBuffers, tensors_of(unit).parameters,
             parameters_of(unit) * plan_.element_bytes());
}

void ShardedUnits::allocate_gradients(std::int64_t unit, std::int64_t parameters) {
  emit_.allocate(MemoryCategory::kGradients, tensors_of(unit).gradients, parameters * plan_.element_bytes());
}

void ShardedUnits::hand_gradients_over(std::int64_t unit, std::int64_t parameters) {
  free_handed_over();
  handed_over_unit_ = unit;
  handed_over_ = parameters * plan_.gradient_bytes;
  emit_.allocate(MemoryCategory::kCommunicationBuffers, tensors_of(unit).scattered, handed_over_);
  emit_.free(MemoryCategory::kGradients, tensors_of(unit).gradients, parameters * plan_.element_bytes());
}

void ShardedUnits::free_handed_over() {
  if (handed_over_unit_ == kNoUnit) return;
  emit_.free(MemoryCategory::kCommunicationBuffers, tensors_of(handed_over_unit_).scattered, handed_over_);
  handed_over_unit_ = kNoUnit;
}

std::uint32_t ShardedUnits::gather(std::int64_t parameters, const std::uint32_t* after) {
  if (after != nullptr) emit_.wait(Stream::kData, *after, Cause::kDataCommunication);
  exchange_.gather(Stream::kData, static_cast<double>(parameters * plan_.element_bytes()));
  return emit_.record(Stream::kData);
}

void ShardedUnits::scatter(std::int64_t parameters) {
  if (parameters == 0) return;
  const std::uint32_t ready = emit_.record(Stream::kCompute);
  emit_.wait(Stream::kData, ready, Cause::kDataCommunication);
  exchange_.reduce(Stream::kData, static_cast<double>(parameters * plan_.gradient_bytes));
  scattered_.push_back(emit_.record(Stream::kData));
  if (!plan_.overlap_gradient_reduction) finish();
}

void ShardedUnits::begin_forward() {
  if (!active_) return;
  allocate(kRootUnit);
  // Not before the gradients of the micro-batch before are complete; the host is that far only then.
  const std::uint32_t start = emit_.record(Stream::kCompute);
  const std::uint32_t ready = gather(root_, &start);
  allocate(0);
  emit_.wait(Stream::kCompute, ready, Cause::kDataCommunication);
}

void ShardedUnits::before_forward(std::int64_t layer) {
  if (!active_) return;
  const auto index = static_cast<std::size_t>(layer);
  const std::uint32_t* room = layer >= kGatheredUnits ? &computed_[index - kGatheredUnits] : nullptr;
  gathered_[index] = gather(layer_, room);
  // The next one is gathered meanwhile.
  if (layer + 1 < layers_) allocate(layer + 1);
  emit_.wait(Stream::kCompute, gathered_[index], Cause::kDataCommunication);
}

void ShardedUnits::after_forward(std::int64_t layer) {
  if (!active_) return;
  computed_[static_cast<std::size_t>(layer)] = emit_.record(Stream::kCompute);
  if (again_in_backward()) free(layer);
}

void ShardedUnits::begin_backward() {
  if (!active_) return;
  allocate_gradients(kRootUnit, trained_root_);
  if (!again_in_backward()) return;
  allocate(layers_ - 1);
  const std::uint32_t start = emit_.record(Stream::kCompute);
  // Without a pipeline, units are numbered as layers are.
  emit_.enter_layer(layers_ - 1);
  gathered_[static_cast<std::size_t>(layers_ - 1)] = gather(layer_, &start);
  emit_.enter_layer(Emitter::kNoLayer);
}

void ShardedUnits::before_backward(std::int64_t layer) {
  if (!active_) return;
  if (again_in_backward()) {
    if (layer > 0) {
      const std::uint32_t start = emit_.record(Stream::kCompute);
      emit_.enter_layer(layer - 1);
      gathered_[static_cast<std::size_t>(layer - 1)] = gather(layer_, &start);
      emit_.enter_layer(layer);
      allocate(layer - 1);
    }
    emit_.wait(Stream::kCompute, gathered_[static_cast<std::size_t>(layer)], Cause::kDataCommunication);
  }
  allocate_gradients(layer, trained_layer_);
}

void ShardedUnits::after_backward(std::int64_t layer) {
  if (!active_) return;
  hand_gradients_over(layer, trained_layer_);
  scatter(trained_layer_);
  free(layer);
}

void ShardedUnits::end_backward() {
  if (!active_) return;
  // The embedding's gradient comes last, and that of the head waits for it.
  hand_gradients_over(kRootUnit, trained_root_);
  scatter(trained_root_);
  free(kRootUnit);
  free_handed_over();
}

void ShardedUnits::finish() {
  if (!scattered_.empty()) emit_.wait(Stream::kCompute, scattered_.back(), Cause::kDataCommunication);
}

}  // namespace trainsim::lowering
