// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/sharded_units.hpp"

#include <cmath>
#include <utility>

#include "sim/lowering/fp8.hpp"

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

}  // namespace

ShardedUnits::ShardedUnits(const plan::ParallelPlan& plan, const Sizes& sizes, std::int64_t layers,
                           Emitter& emit, HostSide& host)
    : plan_(plan),
      layer_(sizes.layer),
      fp8_layer_(sizes.fp8_layer),
      trained_layer_(sizes.trained_layer),
      root_(sizes.root),
      trained_root_(trained_of(sizes.root, plan)),
      layers_(layers),
      unit_layers_(plan.units.layers_of_unit(sizes.layer)),
      units_((layers + unit_layers_ - 1) / unit_layers_),
      emit_(emit),
      host_(host),
      exchange_(plan, emit),
      active_(plan.works_by_units()) {
  if (!active_) return;
  gathered_.resize(static_cast<std::size_t>(units_));
  computed_.resize(static_cast<std::size_t>(units_));
  root_tensors_ = name("embedding and head");
  tensors_.reserve(static_cast<std::size_t>(units_));
  for (std::int64_t unit = 0; unit < units_; ++unit) tensors_.push_back(name("unit " + std::to_string(unit)));
}

Pass ShardedUnits::beside_forward(Pass pass, const RingEstimate& ring,
                                  const cost::KernelModel& kernels) const {
  if (!active_ || !plan_.profile.empty()) return pass;
  const Seconds time = ring.time(CollectiveOp::kAllGather, plan_.shard_ranks(), gathered_layer_bytes());
  return slowed(std::move(pass), time, kernels);
}

Pass ShardedUnits::beside_backward(Pass pass, const RingEstimate& ring,
                                   const cost::KernelModel& kernels) const {
  if (!active_ || !plan_.profile.empty()) return pass;
  Seconds time = 0;
  if (plan_.overlap_gradient_reduction) {
    const auto bytes = static_cast<double>(trained_layer_ * plan_.gradient_bytes);
    time += ring.time(CollectiveOp::kReduceScatter, plan_.shard_ranks(), bytes);
  }
  if (again_in_backward() && prefetches(BackwardPrefetch::kPre)) {
    time += ring.time(CollectiveOp::kAllGather, plan_.shard_ranks(), gathered_layer_bytes());
  }
  return slowed(std::move(pass), time, kernels);
}

ShardedUnits::Tensors ShardedUnits::name(const std::string& owner) {
  return {emit_.tensor(owner + ": gathered parameters"), emit_.tensor(owner + ": whole gradients"),
          emit_.tensor(owner + ": gradients being scattered")};
}

void ShardedUnits::allocate(std::int64_t unit) {
  if (!gathers_memory()) return;
  emit_.allocate(MemoryCategory::kCommunicationBuffers, tensors_of(unit).parameters, gathered_bytes(unit));
}

void ShardedUnits::free(std::int64_t unit) {
  if (!gathers_memory()) return;
  emit_.free(MemoryCategory::kCommunicationBuffers, tensors_of(unit).parameters, gathered_bytes(unit));
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

double ShardedUnits::gathered_layer_bytes() const {
  return gathered_parameter_bytes(plan_, static_cast<double>(layer_), fp8_layer_);
}

Bytes ShardedUnits::gathered_bytes(std::int64_t unit) const {
  const std::int64_t fp8 = unit == kRootUnit ? 0 : layers_of(unit) * fp8_layer_;
  return std::llround(gathered_parameter_bytes(plan_, static_cast<double>(parameters_of(unit)), fp8));
}

std::uint32_t ShardedUnits::gather(std::int64_t unit, const std::uint32_t* after) {
  if (host_.keeps_parameters()) {
    const double shard = static_cast<double>(parameters_of(unit)) / static_cast<double>(plan_.shard_ranks());
    emit_.wait(Stream::kData, host_.fetch_parameters(shard, after), Cause::kOffload);
  } else if (after != nullptr) {
    emit_.wait(Stream::kData, *after, Cause::kDataCommunication);
  }
  exchange_.gather(Stream::kData, static_cast<double>(gathered_bytes(unit)));
  return emit_.record(Stream::kData);
}

void ShardedUnits::scatter(std::int64_t parameters) {
  if (parameters == 0) return;
  const std::uint32_t ready = emit_.record(Stream::kCompute);
  emit_.wait(Stream::kData, ready, Cause::kDataCommunication);
  exchange_.reduce(Stream::kData, static_cast<double>(parameters * plan_.gradient_bytes));
  scattered_.push_back(emit_.record(Stream::kData));
  const double shard = static_cast<double>(parameters) / static_cast<double>(plan_.shard_ranks());
  host_.copy_gradients(shard, Stream::kData, adds_);
  if (!plan_.overlap_gradient_reduction) finish();
}

void ShardedUnits::begin_forward() {
  if (!active_) return;
  allocate(kRootUnit);
  // Not before the gradients of the micro-batch before are complete; the host is that far only then.
  const std::uint32_t start = emit_.record(Stream::kCompute);
  const std::uint32_t ready = gather(kRootUnit, &start);
  for (std::int64_t unit = 0; unit < std::min(units_, plan_.units.gathered - 1); ++unit) allocate(unit);
  emit_.wait(Stream::kCompute, ready, gathering());
}

void ShardedUnits::before_forward(std::int64_t layer) {
  if (!active_ || !begins_unit(layer)) return;
  const std::int64_t unit = unit_of(layer);
  const auto index = static_cast<std::size_t>(unit);
  const std::int64_t gathered = plan_.units.gathered;
  // What is gathered ahead of the one at hand is gathered meanwhile.
  if (unit + gathered - 1 < units_) allocate(unit + gathered - 1);
  const std::uint32_t* room =
      unit >= gathered ? &computed_[static_cast<std::size_t>(unit - gathered)] : nullptr;
  gathered_[index] = gather(unit, room);
  emit_.wait(Stream::kCompute, gathered_[index], gathering());
}

void ShardedUnits::after_forward(std::int64_t layer) {
  if (!active_ || !ends_unit(layer)) return;
  computed_[static_cast<std::size_t>(unit_of(layer))] = emit_.record(Stream::kCompute);
  if (again_in_backward()) free(unit_of(layer));
}

void ShardedUnits::gather_again(std::int64_t unit) {
  const std::uint32_t start = emit_.record(Stream::kCompute);
  allocate(unit);
  const std::int64_t layer = emit_.layer();
  emit_.enter_layer(unit * unit_layers_);
  gathered_[static_cast<std::size_t>(unit)] = gather(unit, &start);
  emit_.enter_layer(layer);
  prefetched_ = true;
}

void ShardedUnits::begin_backward(std::int64_t micro_batch) {
  if (!active_) return;
  adds_ = micro_batch > 0;
  allocate_gradients(kRootUnit, trained_root_);
  prefetched_ = false;
  if (again_in_backward() && prefetches(BackwardPrefetch::kPre)) gather_again(units_ - 1);
}

void ShardedUnits::before_backward(std::int64_t layer) {
  if (!active_ || !ends_unit(layer)) return;
  const std::int64_t unit = unit_of(layer);
  if (again_in_backward()) {
    if (!prefetched_) gather_again(unit);
    const std::uint32_t ready = gathered_[static_cast<std::size_t>(unit)];
    prefetched_ = false;
    if (unit > 0 && prefetches(BackwardPrefetch::kPre)) gather_again(unit - 1);
    emit_.wait(Stream::kCompute, ready, gathering());
  }
  allocate_gradients(unit, layers_of(unit) * trained_layer_);
}

void ShardedUnits::after_backward(std::int64_t layer) {
  if (!active_ || !begins_unit(layer)) return;
  const std::int64_t unit = unit_of(layer);
  const std::int64_t trained = layers_of(unit) * trained_layer_;
  const bool early = again_in_backward() && prefetches(BackwardPrefetch::kPost);
  if (early) {
    free(unit);
    if (unit > 0) gather_again(unit - 1);
  }
  hand_gradients_over(unit, trained);
  scatter(trained);
  if (!early) free(unit);
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
