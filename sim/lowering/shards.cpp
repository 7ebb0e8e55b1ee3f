// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/shards.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

namespace trainsim::lowering {

using plan::Framework;
using program::MemoryCategory;

namespace {

std::int64_t sum(const std::vector<std::int64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

}  // namespace

std::int64_t share_of(std::int64_t count, std::int64_t ranks) {
  return (count + ranks - 1) / ranks;
}

std::vector<std::vector<std::int64_t>> dealt_out(const Owned& owned) {
  std::vector<std::int64_t> weights = owned.weights;
  std::sort(weights.begin(), weights.end(), std::greater<>());
  // With more ranks than weights each weight has a rank to itself.
  std::vector<std::vector<std::int64_t>> owners(
      std::min(static_cast<std::size_t>(owned.ranks), weights.size()));
  for (const std::int64_t weight : weights) {
    std::min_element(owners.begin(), owners.end(), [](const auto& a, const auto& b) {
      return sum(a) < sum(b);
    })->push_back(weight);
  }
  return owners;
}

std::vector<std::int64_t> shard_pieces(const plan::ParallelPlan& plan, const Owned& owned) {
  if (plan.deals_out_weights()) {
    const auto owners = dealt_out(owned);
    const auto fullest = std::max_element(owners.begin(), owners.end(),
                                          [](const auto& a, const auto& b) { return sum(a) < sum(b); });
    return fullest == owners.end() ? std::vector<std::int64_t>{} : *fullest;
  }
  std::int64_t left = share_of(owned.parameters, owned.ranks);
  std::vector<std::int64_t> pieces;
  for (auto weight = owned.weights.rbegin(); weight != owned.weights.rend() && left > 0; ++weight) {
    const std::int64_t piece =
        std::min(left, plan.shards_each_weight() ? share_of(*weight, owned.ranks) : *weight);
    pieces.push_back(piece);
    left -= piece;
  }
  return pieces;
}

std::int64_t fullest_shard(const plan::ParallelPlan& plan, const Owned& owned) {
  return plan.deals_out_weights() ? sum(shard_pieces(plan, owned)) : share_of(owned.parameters, owned.ranks);
}

OptimizerBuffers::OptimizerBuffers(const plan::ParallelPlan& plan, std::vector<std::int64_t> pieces,
                                   Emitter& emit)
    : plan_(plan), pieces_(std::move(pieces)), emit_(emit) {}

void OptimizerBuffers::begin() {
  if (plan_.framework != Framework::kInternEvo) {
    if (plan_.optimizer_gradient_bytes() < 4)
      held_ = tensors("gradients in fp32 for the optimizer", 4, false);
    allocate(held_);
    return;
  }
  const bool each = plan_.sharding == plan::Sharding::kZero3;
  const auto norms = tensors("gradients in fp32 for their norm", 4, true);
  allocate(norms);
  free(norms);
  const auto flat = tensors("gradients in one tensor", each ? 0 : plan_.gradient_bytes, false);
  allocate(flat);
  held_ = tensors("gradients in fp32 for the optimizer", 4, each);
  allocate(held_);
  free(flat);
  for (const char* name : {"square roots of moments", "denominators of the update"}) {
    const auto work = tensors(name, 4, each);
    allocate(work);
    held_.insert(held_.end(), work.begin(), work.end());
  }
}

void OptimizerBuffers::end() {
  free(held_);
}

std::vector<std::pair<std::uint32_t, Bytes>> OptimizerBuffers::tensors(const char* name, std::int64_t bytes,
                                                                       bool each) {
  if (!each) return {{emit_.tensor(name), bytes * sum(pieces_)}};
  std::vector<std::pair<std::uint32_t, Bytes>> parts;
  parts.reserve(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    parts.emplace_back(emit_.tensor(name + (", part " + std::to_string(i + 1))), bytes * pieces_[i]);
  return parts;
}

void OptimizerBuffers::allocate(const std::vector<std::pair<std::uint32_t, Bytes>>& tensors) {
  for (const auto& [tensor, bytes] : tensors) emit_.allocate(MemoryCategory::kTemporary, tensor, bytes);
}

void OptimizerBuffers::free(const std::vector<std::pair<std::uint32_t, Bytes>>& tensors) {
  for (const auto& [tensor, bytes] : tensors) emit_.free(MemoryCategory::kTemporary, tensor, bytes);
}

}  // namespace trainsim::lowering
