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

bool shards_parameters(const plan::ParallelPlan& plan) {
  const bool sharded = plan.sharding == plan::Sharding::kZero2 || plan.sharding == plan::Sharding::kZero3;
  return sharded && plan.shard_ranks() > 1;
}

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

ShardedUnits::ShardedUnits(const plan::ParallelPlan& plan, std::int64_t layer_parameters,
                           std::int64_t embedding_parameters, std::int64_t head_parameters,
                           std::int64_t layers, Emitter& emit)
    : plan_(plan),
      layer_(layer_parameters),
      head_(head_parameters),
      root_(embedding_parameters + head_parameters),
      layers_(layers),
      emit_(emit),
      exchange_(plan, emit),
      active_(shards_parameters(plan)) {
  if (!active_) return;
  tensor_ = emit_.tensor("gathered parameters");
  gradients_ = emit_.tensor("gradients before they are scattered");
  gathered_.resize(static_cast<std::size_t>(layers));
  computed_.resize(static_cast<std::size_t>(layers));
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
    const auto bytes = static_cast<double>(layer_ * plan_.gradient_bytes);
    time += ring.time(CollectiveOp::kReduceScatter, plan_.shard_ranks(), bytes);
  }
  if (again_in_backward()) {
    const auto bytes = static_cast<double>(layer_ * plan_.element_bytes());
    time += ring.time(CollectiveOp::kAllGather, plan_.shard_ranks(), bytes);
  }
  return slowed(std::move(pass), time, kernels);
}

// With ZeRO-2 whole parameters are part of the state.
void ShardedUnits::allocate(std::int64_t parameters) {
  if (!again_in_backward()) return;
  emit_.allocate(MemoryCategory::kCommunicationBuffers, tensor_, parameters * plan_.element_bytes());
}

void ShardedUnits::free(std::int64_t parameters) {
  if (!again_in_backward()) return;
  emit_.free(MemoryCategory::kCommunicationBuffers, tensor_, parameters * plan_.element_bytes());
}

std::uint32_t ShardedUnits::gather(std::int64_t parameters, const std::uint32_t* after) {
  if (after != nullptr) emit_.wait(Stream::kData, *after, Cause::kDataCommunication);
  exchange_.gather(Stream::kData, static_cast<double>(parameters * plan_.element_bytes()));
  return emit_.record(Stream::kData);
}

void ShardedUnits::scatter(std::int64_t parameters) {
  const std::uint32_t ready = emit_.record(Stream::kCompute);
  emit_.wait(Stream::kData, ready, Cause::kDataCommunication);
  exchange_.reduce(Stream::kData, static_cast<double>(parameters * plan_.gradient_bytes));
  scattered_.push_back(emit_.record(Stream::kData));
  if (!plan_.overlap_gradient_reduction) finish();
}

void ShardedUnits::begin_forward() {
  if (!active_) return;
  allocate(root_);
  // Not before the gradients of the micro-batch before are complete; the host is that far only then.
  const std::uint32_t start = emit_.record(Stream::kCompute);
  const std::uint32_t ready = gather(root_, &start);
  allocate(layer_);
  emit_.wait(Stream::kCompute, ready, Cause::kDataCommunication);
}

void ShardedUnits::before_forward(std::int64_t layer) {
  if (!active_) return;
  const auto index = static_cast<std::size_t>(layer);
  const std::uint32_t* room = layer >= kGatheredUnits ? &computed_[index - kGatheredUnits] : nullptr;
  gathered_[index] = gather(layer_, room);
  // The next one is gathered meanwhile.
  if (layer + 1 < layers_) allocate(layer_);
  emit_.wait(Stream::kCompute, gathered_[index], Cause::kDataCommunication);
}

void ShardedUnits::after_forward(std::int64_t layer) {
  if (!active_) return;
  computed_[static_cast<std::size_t>(layer)] = emit_.record(Stream::kCompute);
  free(layer_);
}

void ShardedUnits::begin_backward() {
  if (!active_) return;
  emit_.allocate(MemoryCategory::kGradients, gradients_, head_ * plan_.gradient_bytes);
  if (!again_in_backward()) return;
  allocate(layer_);
  const std::uint32_t start = emit_.record(Stream::kCompute);
  gathered_[static_cast<std::size_t>(layers_ - 1)] = gather(layer_, &start);
}

void ShardedUnits::before_backward(std::int64_t layer) {
  if (!active_) return;
  if (again_in_backward()) {
    if (layer > 0) {
      const std::uint32_t start = emit_.record(Stream::kCompute);
      gathered_[static_cast<std::size_t>(layer - 1)] = gather(layer_, &start);
      allocate(layer_);
    }
    emit_.wait(Stream::kCompute, gathered_[static_cast<std::size_t>(layer)], Cause::kDataCommunication);
  }
  emit_.allocate(MemoryCategory::kGradients, gradients_, layer_ * plan_.gradient_bytes);
}

void ShardedUnits::after_backward(std::int64_t /*layer*/) {
  if (!active_) return;
  scatter(layer_);
  free(layer_);
  emit_.free(MemoryCategory::kGradients, gradients_, layer_ * plan_.gradient_bytes);
}

void ShardedUnits::end_backward() {
  if (!active_) return;
  // The embedding's gradient comes last, the head's has been there since its backward.
  emit_.allocate(MemoryCategory::kGradients, gradients_, (root_ - head_) * plan_.gradient_bytes);
  scatter(root_);
  emit_.free(MemoryCategory::kGradients, gradients_, root_ * plan_.gradient_bytes);
  free(root_);
}

void ShardedUnits::finish() {
  if (!scattered_.empty()) emit_.wait(Stream::kCompute, scattered_.back(), Cause::kDataCommunication);
}

}  // namespace trainsim::lowering
