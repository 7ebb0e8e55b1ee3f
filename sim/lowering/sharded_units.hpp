// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/lowering/data_exchange.hpp"
#include "sim/lowering/emitter.hpp"
#include "sim/lowering/host.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Parameters that data-parallel ranks hold in shards and gather when they are needed, as PyTorch's FSDP
/// does: a layer, or several, are a unit; embedding and head are the root, which stays gathered from its
/// forward to the end of backward. Does nothing with other shardings, or with one data-parallel rank that
/// offloads nothing.
///
/// Forward gathers units while those before them compute, as many at a time as the plan lets it. With ZeRO-3
/// a unit is dropped after its forward, and gathered again when the plan's backward prefetch says so; with
/// ZeRO-2 (FSDP's shard_grad_op) it stays, and counts as whole in the state. After its backward a unit's
/// gradients are scattered while backward goes on. All of this happens in every micro-batch (Zhao et al.
/// 2023, "PyTorch FSDP", section 4).
class ShardedUnits {
 public:
  /// Parameters on one tensor-parallel rank: of a layer, what of those is trained, and of the root (embedding
  /// and head), which is trained if all of a layer is.
  struct Sizes {
    std::int64_t layer = 0;
    std::int64_t trained_layer = 0;
    std::int64_t root = 0;
    /// What of a layer has multiplies in 8 bits.
    std::int64_t fp8_layer = 0;
  };
  /// `layers` of the model.
  ShardedUnits(const plan::ParallelPlan& plan, const Sizes& sizes, std::int64_t layers, Emitter& emit,
               HostSide& host);

  bool active() const { return active_; }
  /// The passes of a layer as they run beside the transfers of its neighbours, which take multiprocessors
  /// from them for as long as they last.
  Pass beside_forward(Pass pass, const RingEstimate& ring, const cost::KernelModel& kernels) const;
  Pass beside_backward(Pass pass, const RingEstimate& ring, const cost::KernelModel& kernels) const;
  /// Around the forward of a micro-batch, and of each layer in it.
  void begin_forward();
  void before_forward(std::int64_t layer);
  void after_forward(std::int64_t layer);
  /// Around the backward of a micro-batch, and of each layer in it (last to first).
  void begin_backward(std::int64_t micro_batch);
  void before_backward(std::int64_t layer);
  void after_backward(std::int64_t layer);
  void end_backward();
  /// Compute waits until the last gradients are scattered.
  void finish();

 private:
  static constexpr std::int64_t kRootUnit = -1;
  static constexpr std::int64_t kNoUnit = -2;
  std::int64_t unit_of(std::int64_t layer) const { return layer / unit_layers_; }
  bool begins_unit(std::int64_t layer) const { return layer % unit_layers_ == 0; }
  bool ends_unit(std::int64_t layer) const { return begins_unit(layer + 1) || layer + 1 == layers_; }
  std::int64_t layers_of(std::int64_t unit) const {
    return std::min(unit_layers_, layers_ - unit * unit_layers_);
  }
  /// Room for a unit, and its gather for backward, from here on.
  void gather_again(std::int64_t unit);
  bool prefetches(plan::BackwardPrefetch moment) const {
    return plan_.units.gathered > 1 && plan_.units.backward_prefetch == moment;
  }
  /// Starts gathering a unit once the event has happened; returns the event of its end.
  std::uint32_t gather(std::int64_t unit, const std::uint32_t* after);
  void scatter(std::int64_t parameters);
  /// A unit's gathered parameters appear and go, where whole parameters are not part of the state. Unit -1 is
  /// the root.
  void allocate(std::int64_t unit);
  void free(std::int64_t unit);
  /// The whole gradients of `parameters` appear; and leave for their scattering, whose input lives until the
  /// next one begins.
  void allocate_gradients(std::int64_t unit, std::int64_t parameters);
  void hand_gradients_over(std::int64_t unit, std::int64_t parameters);
  void free_handed_over();
  /// What compute waits for when it waits for parameters: with one rank they come from the host alone.
  program::Cause gathering() const {
    return plan_.shard_ranks() > 1 ? program::Cause::kDataCommunication : program::Cause::kOffload;
  }
  bool again_in_backward() const { return plan_.sharding == plan::Sharding::kZero3; }
  bool gathers_memory() const { return again_in_backward() || plan_.framework == plan::Framework::kFsdp; }
  std::int64_t parameters_of(std::int64_t unit) const {
    return unit == kRootUnit ? root_ : layers_of(unit) * layer_;
  }
  /// Bytes of a unit's gathered parameters, and of those of a layer.
  Bytes gathered_bytes(std::int64_t unit) const;
  double gathered_layer_bytes() const;
  /// The tensors of a unit.
  struct Tensors {
    std::uint32_t parameters = 0;
    std::uint32_t gradients = 0;
    std::uint32_t scattered = 0;
  };
  Tensors name(const std::string& owner);
  const Tensors& tensors_of(std::int64_t unit) const {
    return unit == kRootUnit ? root_tensors_ : tensors_[static_cast<std::size_t>(unit)];
  }

  const plan::ParallelPlan& plan_;
  std::int64_t layer_;
  std::int64_t fp8_layer_;
  std::int64_t trained_layer_;
  std::int64_t root_;
  std::int64_t trained_root_;
  std::int64_t layers_;
  std::int64_t unit_layers_;
  /// All but the root.
  std::int64_t units_;
  Emitter& emit_;
  HostSide& host_;
  DataExchange exchange_;
  bool active_;
  /// Whether the running backward adds to gradients of micro-batches before it.
  bool adds_ = false;
  Tensors root_tensors_;
  std::vector<Tensors> tensors_;
  /// Whether the unit that backward comes to next is being gathered.
  bool prefetched_ = false;
  /// Bytes of the last gradients that are on their way.
  std::int64_t handed_over_unit_ = kNoUnit;
  Bytes handed_over_ = 0;
  /// By unit: when it is gathered, and when its forward is done.
  std::vector<std::uint32_t> gathered_;
  std::vector<std::uint32_t> computed_;
  std::vector<std::uint32_t> scattered_;
};

}  // namespace trainsim::lowering
