// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "sim/hardware/spec.hpp"
#include "sim/lowering/emitter.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// What a rank gets of its host, when all GPUs that the plan uses of a node copy and update at the same time.
struct HostShare {
  /// Copies between GPU and host memory, each direction.
  BytesPerSecond copy = 0;
  /// HostSide memory, as an optimizer reads and writes it.
  BytesPerSecond memory = 0;
  BytesPerSecond nvme_read = 0;
  BytesPerSecond nvme_write = 0;
};

/// Nothing for a cluster that does not describe its hosts.
HostShare host_share(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan);

/// Emits what happens between a rank and its host when state is offloaded. Nothing where it is not.
///
/// Gradients leave for the host as soon as they are reduced, while backward goes on. The CPUs then update the
/// parameters, with kernels bound by memory, and copy updated stretches back while they work on the next (Ren
/// et al. 2021, ZeRO-Offload, sections 4.1 and 5.1). State on disks is read, updated and written in a
/// pipeline, whose slowest part counts (Rajbhandari et al. 2021, ZeRO-Infinity, section 6.3).
class HostSide {
 public:
  HostSide(const plan::ParallelPlan& plan, const HostShare& share, Emitter& emit);

  bool updates() const { return plan_.offload.optimizer != plan::OffloadTarget::kNone; }
  bool keeps_parameters() const { return plan_.offload.parameters != plan::OffloadTarget::kNone; }

  /// Copies `bytes` of activations out, or in, once compute has come here; returns the event of its end.
  std::uint32_t copy_activations(double bytes, program::Stream direction);
  /// Copies the gradients of `parameters` of the rank's shard out once the stream has reached this point;
  /// `sums` of earlier micro-batches are fetched before, added on the GPU and copied out.
  void copy_gradients(double parameters, program::Stream after, bool sums);
  /// Fetches `parameters` of the shard once `room` has happened, if it is given; returns the event of their
  /// arrival.
  std::uint32_t fetch_parameters(double parameters, const std::uint32_t* room);
  /// Updates the shard's `parameters` after all gradients have arrived. Compute waits until that is done, and
  /// has the parameters back unless they stay on the host.
  void update(double parameters);

 private:
  Seconds update_time(double parameters) const;
  Seconds fetch_time(double bytes) const;
  std::uint32_t work(const char* name, double amount, Seconds seconds);
  double gradient_bytes() const;
  double parameter_bytes() const;

  const plan::ParallelPlan& plan_;
  HostShare share_;
  Emitter& emit_;
  /// Work of a name and amount that is registered already.
  std::map<std::pair<std::string, double>, std::uint32_t> known_;
  bool copied_ = false;
  std::uint32_t last_copy_ = 0;
};

}  // namespace trainsim::lowering
