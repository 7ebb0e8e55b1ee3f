// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/lowering/data_exchange.hpp"
#include "sim/lowering/emitter.hpp"
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/host.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Parameters of a layer on one tensor-parallel rank.
struct UnitLayer {
  /// Those that all data-parallel ranks share, and how many of them are trained.
  std::int64_t shared = 0;
  std::int64_t trained = 0;
  /// Those of routed experts, all of which are trained.
  std::int64_t experts = 0;
  /// What of both has multiplies in 8 bits.
  Fp8Parameters fp8;
};

UnitLayer unit_layer(const model::ModelSpec& model, const plan::ParallelPlan& plan, model::LayerKind kind);

/// Rings over which a layer's parameters are gathered: of all data-parallel ranks, and of those with the same
/// experts.
struct UnitRings {
  RingEstimate shared;
  RingEstimate experts;
};

/// The passes of a layer as they run beside the transfers of its neighbours, which take multiprocessors from
/// them for as long as they last. In a pipeline backwards are taken to gather with ZeRO-3, and nothing else:
/// gathers of warm-up forwards, and what is done once in a step, are left out.
Pass beside_forward_transfers(Pass pass, const plan::ParallelPlan& plan, const UnitLayer& layer,
                              const UnitRings& rings, const cost::KernelModel& kernels);
Pass beside_backward_transfers(Pass pass, const plan::ParallelPlan& plan, const UnitLayer& layer,
                               const UnitRings& rings, const cost::KernelModel& kernels);

/// Parameters that data-parallel ranks hold in shards and gather when they are needed, as PyTorch's FSDP
/// does: a layer, or several, are a unit; embedding and head are the root, which stays gathered from its
/// forward to the end of backward. One for each chunk of a stage. Does nothing with other shardings, or with
/// one data-parallel rank that offloads nothing.
///
/// Forward gathers units while those before them compute, as many at a time as the plan lets it. With ZeRO-3
/// a unit is dropped after its forward, and gathered again when the plan's backward prefetch says so; with
/// ZeRO-2 (FSDP's shard_grad_op) it stays, and counts as whole in the state. After its backward a unit's
/// gradients are scattered while backward goes on. All of this happens in every micro-batch (Zhao et al.
/// 2023, "PyTorch FSDP", section 4).
///
/// In a pipeline of FSDP's, or with GPipe's schedule, gradients are added up whole, and scattered, unit by
/// unit, once the last backward of the chunk is done; until then what backward has gathered stays, and ZeRO-2
/// gathers once in a step (PyTorch's PipelineStage.backward_maybe_with_nosync; the Llama 3 paper,
/// section 3.3.2).
class ShardedUnits {
 public:
  struct Chunk {
    std::vector<UnitLayer> layers;
    /// Number in the model of the first one.
    std::int64_t first_layer = 0;
    /// Parameters of the root; they are trained unless adapters are.
    std::int64_t root = 0;
    /// Begins the names of its tensors.
    std::string prefix;
  };
  ShardedUnits(const plan::ParallelPlan& plan, const Chunk& chunk, Emitter& emit, HostSide& host);

  /// Around the forward of a micro-batch, and of each layer in it, counted from the chunk's first.
  void begin_forward();
  void before_forward(std::int64_t layer);
  void after_forward(std::int64_t layer);
  /// Around the backward of a micro-batch, and of each layer in it (last to first). `completes` says whether
  /// it is the last one that adds to the chunk's gradients.
  void begin_backward(std::int64_t micro_batch, bool completes);
  void before_backward(std::int64_t layer);
  void after_backward(std::int64_t layer);
  void end_backward();
  /// Compute waits until the last gradients are scattered.
  void finish();

 private:
  /// What there is of a unit's parameters beside the shard.
  enum class State { kNothing, kRoom, kComing, kWhole };
  /// A unit, or the root.
  struct Unit {
    UnitLayer sizes;
    std::int64_t first_layer = 0;
    State state = State::kNothing;
    /// When it is gathered, and when its forward is done.
    std::uint32_t gathered = 0;
    std::uint32_t computed = 0;
    /// Names of its tensors.
    std::uint32_t parameters = 0;
    std::uint32_t gradients = 0;
    std::uint32_t sums = 0;
    std::uint32_t scattered = 0;
  };

  void cut(const Chunk& chunk);
  void name(Unit& unit, const std::string& owner);
  std::int64_t units() const { return static_cast<std::int64_t>(units_.size()); }
  Unit& at(std::int64_t unit) { return units_[static_cast<std::size_t>(unit)]; }
  std::int64_t unit_of(std::int64_t layer) const { return unit_of_[static_cast<std::size_t>(layer)]; }
  bool begins_unit(std::int64_t layer) const { return layer == 0 || unit_of(layer - 1) != unit_of(layer); }
  bool ends_unit(std::int64_t layer) const {
    return layer + 1 == static_cast<std::int64_t>(unit_of_.size()) || begins_unit(layer + 1);
  }
  /// Bytes of gathered parameters, and of a backward's gradients in compute precision.
  Bytes gathered_bytes(const Unit& unit) const;
  Bytes whole_gradient_bytes(const Unit& unit) const;
  /// Gathered parameters appear and go, where whole parameters are not part of the state.
  void make_room(Unit& unit);
  void drop(Unit& unit);
  /// Starts gathering a unit once the event has happened, if there is one.
  void gather(Unit& unit, const std::uint32_t* after);
  /// Room for a unit, and its gather for backward, from here on, unless it is there.
  void gather_again(Unit& unit);
  /// Compute waits until a unit is gathered.
  void await(Unit& unit);
  bool prefetches(plan::BackwardPrefetch moment) const {
    return plan_.units.gathered > 1 && plan_.units.backward_prefetch == moment;
  }
  /// The whole gradients of a unit appear in its backward; and are added to the sums of a pipeline.
  void allocate_gradients(Unit& unit);
  void add_up(Unit& unit);
  /// Whole gradients leave for their scattering, whose input lives until the next one begins.
  void scatter(Unit& unit);
  void free_handed_over();
  /// What compute waits for when it waits for parameters: with one rank they come from the host alone.
  program::Cause gathering() const {
    return plan_.shards_parameters() ? program::Cause::kDataCommunication : program::Cause::kOffload;
  }
  bool again_in_backward() const { return plan_.sharding == plan::Sharding::kZero3; }
  bool gathers_memory() const { return again_in_backward() || plan_.framework == plan::Framework::kFsdp; }

  const plan::ParallelPlan& plan_;
  Emitter& emit_;
  HostSide& host_;
  DataExchange exchange_;
  bool active_;
  /// Whether gradients are added up before they are scattered.
  bool adds_up_;
  Unit root_;
  std::vector<Unit> units_;
  /// When a forward began whose first unit is to be gathered and whose root is there.
  std::optional<std::uint32_t> start_;
  /// By layer.
  std::vector<std::int64_t> unit_of_;
  /// Whether the running backward is not the first, and whether it is the last.
  bool adds_ = false;
  bool completes_ = true;
  /// The last gradients that are on their way, and their bytes.
  const Unit* handed_over_unit_ = nullptr;
  Bytes handed_over_ = 0;
  std::vector<std::uint32_t> scattered_;
};

}  // namespace trainsim::lowering
