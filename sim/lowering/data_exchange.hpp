// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/lowering/emitter.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Emits what data-parallel ranks, and context-parallel ones with them, exchange for a tensor of which every
/// rank has a full copy before or after: gradients are reduced over all ranks, to the shards where state is
/// sharded, and parameters gathered from shards. With hybrid sharding gradients are scattered within a shard
/// group first, and each shard is then reduced over its replicas (Zhao et al. 2023, "PyTorch FSDP",
/// section 3.2.2).
class DataExchange {
 public:
  DataExchange(const plan::ParallelPlan& plan, Emitter& emit) : plan_(plan), emit_(emit) {}

  /// Adds up gradients of `bytes`. Nothing with a single data-parallel rank.
  void reduce(program::Stream stream, double bytes);
  /// Sends parameters of `bytes` from the rank that has updated them to the others that share their state.
  void broadcast(program::Stream stream, double bytes);
  /// Gathers parameters of `bytes`. Nothing where they are not sharded.
  void gather(program::Stream stream, double bytes);
  /// The same for routed experts, of which fewer ranks have the same. Nothing for 0 bytes.
  void reduce_experts(program::Stream stream, double bytes);
  void gather_experts(program::Stream stream, double bytes);

 private:
  void collective(program::Stream stream, program::GroupKind group, program::CollectiveOp op, double bytes);
  program::GroupKind shard_kind() const {
    return plan_.is_hybrid() ? program::GroupKind::kShard : program::GroupKind::kData;
  }

  /// Ranks with the same experts: all data-parallel ones, unless experts are spread over these.
  program::GroupKind expert_kind() const {
    return plan_.spreads_experts() ? program::GroupKind::kExpertData : program::GroupKind::kData;
  }

  const plan::ParallelPlan& plan_;
  Emitter& emit_;
};

}  // namespace trainsim::lowering
