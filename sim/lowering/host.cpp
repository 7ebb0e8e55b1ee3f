// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/host.hpp"

#include <algorithm>

#include "sim/lowering/state.hpp"

namespace trainsim::lowering {

using plan::Framework;
using plan::OffloadTarget;
using program::Cause;
using program::Stream;

HostShare host_share(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan) {
  if (!cluster.host) return {};
  const hardware::HostSpec& host = *cluster.host;
  const std::int64_t gpus = std::min(plan.gpus, cluster.gpus_per_node);
  const auto share = static_cast<double>(gpus);
  return {host.copy_rate(gpus), host.memory_bandwidth * host.memory_efficiency / share,
          host.nvme_read_bandwidth / share, host.nvme_write_bandwidth / share};
}

HostSide::HostSide(const plan::ParallelPlan& plan, const HostShare& share, Emitter& emit)
    : plan_(plan), share_(share), emit_(emit) {}

std::uint32_t HostSide::work(const char* name, double amount, Seconds seconds) {
  const auto [place, added] = known_.try_emplace({name, amount}, 0);
  if (added) place->second = emit_.register_work(name, seconds);
  return place->second;
}

/// DeepSpeed copies gradients in compute precision and adds them up in fp32 on the host.
double HostSide::gradient_bytes() const {
  const bool low = plan_.framework == Framework::kDeepSpeed;
  return static_cast<double>(low ? plan_.element_bytes() : plan_.optimizer_gradient_bytes());
}

/// FSDP's shards are in fp32, and cast on the GPU.
double HostSide::parameter_bytes() const {
  return plan_.framework == Framework::kFsdp ? 4.0 : static_cast<double>(plan_.element_bytes());
}

std::uint32_t HostSide::copy_activations(double bytes, Stream direction) {
  const char* name = direction == Stream::kToHost ? "activations to host" : "activations from host";
  emit_.wait(direction, emit_.record(Stream::kCompute), Cause::kOffload);
  emit_.run(direction, work(name, bytes, bytes / share_.copy), Cause::kOffload);
  return emit_.record(direction);
}

void HostSide::copy_gradients(double parameters, Stream after, bool sums) {
  if (!updates()) return;
  const double bytes = parameters * gradient_bytes();
  const std::uint32_t copy = work("gradients to host", bytes, bytes / share_.copy);
  emit_.wait(Stream::kToHost, emit_.record(after), Cause::kOffload);
  if (sums) {
    const double held = parameters * 4.0;
    emit_.run(Stream::kFromHost, work("sums of gradients from host", held, held / share_.copy),
              Cause::kOffload);
    emit_.wait(Stream::kToHost, emit_.record(Stream::kFromHost), Cause::kOffload);
  }
  emit_.run(Stream::kToHost, copy, Cause::kOffload);
  last_copy_ = emit_.record(Stream::kToHost);
  copied_ = true;
}

Seconds HostSide::fetch_time(double bytes) const {
  const Seconds copy = bytes / share_.copy;
  return plan_.offload.parameters == OffloadTarget::kNvme ? std::max(copy, bytes / share_.nvme_read) : copy;
}

std::uint32_t HostSide::fetch_parameters(double parameters, const std::uint32_t* room) {
  if (room != nullptr) emit_.wait(Stream::kFromHost, *room, Cause::kOffload);
  const double bytes = parameters * parameter_bytes();
  emit_.run(Stream::kFromHost, work("parameters from host", bytes, fetch_time(bytes)), Cause::kOffload);
  return emit_.record(Stream::kFromHost);
}

/// Reads the fp32 gradient, reads and writes master weight and moments, writes the parameter for the GPU.
Seconds HostSide::update_time(double parameters) const {
  const double kept = 4.0 + moment_bytes(plan_.optimizer);
  const double copy = plan_.stores_fp32() ? 0.0 : parameter_bytes();
  Seconds longest = parameters * (4.0 + 2.0 * kept + copy) / share_.memory;
  if (!keeps_parameters()) longest = std::max(longest, parameters * parameter_bytes() / share_.copy);
  if (plan_.offload.optimizer == OffloadTarget::kNvme) {
    const double bytes = parameters * kept;
    longest = std::max(longest, bytes / share_.nvme_read + bytes / share_.nvme_write);
  }
  return longest;
}

void HostSide::update(double parameters) {
  if (copied_) emit_.wait(Stream::kFromHost, last_copy_, Cause::kOffload);
  emit_.run(Stream::kFromHost, work("optimizer on the host", parameters, update_time(parameters)),
            Cause::kOffload);
  emit_.wait(Stream::kCompute, emit_.record(Stream::kFromHost), Cause::kOffload);
}

}  // namespace trainsim::lowering
