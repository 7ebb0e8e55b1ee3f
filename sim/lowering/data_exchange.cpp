// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/data_exchange.hpp"

namespace trainsim::lowering {

using program::CollectiveOp;
using program::GroupKind;

void DataExchange::collective(program::Stream stream, GroupKind group, CollectiveOp op, double bytes) {
  emit_.collective(stream, group, op, bytes, program::Cause::kDataCommunication);
}

void DataExchange::reduce(program::Stream stream, double bytes) {
  if (plan_.data_context_ranks() < 2) return;
  if (plan_.sharding == plan::Sharding::kNone || plan_.deals_out_weights()) {
    collective(stream, GroupKind::kData, CollectiveOp::kAllReduce, bytes);
    return;
  }
  const auto ranks = static_cast<double>(plan_.shard_ranks());
  if (plan_.shard_ranks() > 1) collective(stream, shard_kind(), CollectiveOp::kReduceScatter, bytes);
  if (plan_.is_hybrid()) collective(stream, GroupKind::kReplica, CollectiveOp::kAllReduce, bytes / ranks);
}

void DataExchange::gather(program::Stream stream, double bytes) {
  if (plan_.shard_ranks() > 1 && bytes > 0) collective(stream, shard_kind(), CollectiveOp::kAllGather, bytes);
}

void DataExchange::broadcast(program::Stream stream, double bytes) {
  if (plan_.shard_ranks() > 1) collective(stream, shard_kind(), CollectiveOp::kBroadcast, bytes);
}

void DataExchange::reduce_experts(program::Stream stream, double bytes) {
  if (plan_.expert_data_parallel() < 2 || bytes <= 0) return;
  const bool sharded = plan_.expert_shard_ranks() > 1;
  collective(stream, expert_kind(), sharded ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce, bytes);
}

void DataExchange::gather_experts(program::Stream stream, double bytes) {
  if (plan_.expert_shard_ranks() < 2 || bytes <= 0) return;
  collective(stream, expert_kind(), CollectiveOp::kAllGather, bytes);
}

}  // namespace trainsim::lowering
