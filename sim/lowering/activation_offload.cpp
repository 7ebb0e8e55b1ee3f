// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/activation_offload.hpp"

#include <algorithm>

#include "sim/lowering/checkpointing.hpp"

namespace trainsim::lowering {

using program::Cause;
using program::Stream;

std::vector<std::int64_t> offload_windows(std::int64_t offloaded, std::int64_t layers) {
  std::vector<std::int64_t> windows;
  windows.reserve(static_cast<std::size_t>(offloaded));
  for (std::int64_t i = 0; i < offloaded; ++i)
    windows.push_back(layers / offloaded * (i + 1) + std::min(i + 1, layers % offloaded) - 1);
  return windows;
}

ActivationOffload::ActivationOffload(const plan::ParallelPlan& plan, std::int64_t layers,
                                     std::vector<TapeEmitter>& memory, HostSide& host, Emitter& emit)
    : plan_(plan),
      memory_(memory),
      host_(host),
      emit_(emit),
      layers_(layers),
      windows_(offload_windows(plan.offloaded_layers, layers)) {}

Keep ActivationOffload::kept(std::int64_t layer) const {
  return kept_of(plan_.recompute, layer);
}

std::uint32_t ActivationOffload::copy(std::int64_t layer, Stream direction) {
  const std::int64_t before = emit_.layer();
  emit_.enter_layer(layer);
  const auto bytes = static_cast<double>(memory_of(layer).kept_bytes(kept(layer)));
  const std::uint32_t end = host_.copy_activations(bytes, direction);
  emit_.enter_layer(before);
  return end;
}

void ActivationOffload::after_forward(std::int64_t layer) {
  if (windows_.empty()) return;
  if (layer == 0) {
    away_ = 0;
    copied_ = copy(0, Stream::kToHost);
  }
  if (away_ == plan_.offloaded_layers || windows_[static_cast<std::size_t>(away_)] != layer) return;
  emit_.wait(Stream::kCompute, copied_, Cause::kOffload);
  memory_of(away_).leave(kept(away_));
  if (++away_ < plan_.offloaded_layers) copied_ = copy(away_, Stream::kToHost);
}

void ActivationOffload::before_backward(std::int64_t layer) {
  if (windows_.empty()) return;
  if (layer + 1 == layers_) away_ = plan_.offloaded_layers;
  const bool first = away_ == plan_.offloaded_layers;
  if (away_ > 0 && windows_[static_cast<std::size_t>(away_ - 1)] == layer) {
    if (!first) emit_.wait(Stream::kCompute, copied_, Cause::kOffload);
    --away_;
    memory_of(away_).come_back(kept(away_));
    copied_ = copy(away_, Stream::kFromHost);
  }
  if (layer == 0) emit_.wait(Stream::kCompute, copied_, Cause::kOffload);
}

}  // namespace trainsim::lowering
