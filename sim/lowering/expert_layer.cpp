// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/expert_layer.hpp"

#include <utility>

namespace trainsim::lowering {

namespace {

using program::Cause;
using program::CollectiveOp;

/// Tokens to their experts: to other ranks, and from those that share the experts.
void add_dispatch(Pass& pass, const ExpertShapes& shapes) {
  if (shapes.expert_parallel > 1) add_exchange(pass, static_cast<double>(shapes.arriving_bytes()));
  if (shapes.expert_tensor > 1)
    add_collective(pass, CollectiveOp::kAllGather, static_cast<double>(shapes.received_bytes()));
}

/// And back: partial sums are reduced to the ranks that the tokens came over.
void add_combine(Pass& pass, const ExpertShapes& shapes) {
  if (shapes.expert_tensor > 1)
    add_collective(pass, CollectiveOp::kReduceScatter, static_cast<double>(shapes.received_bytes()));
  if (shapes.expert_parallel > 1) add_exchange(pass, static_cast<double>(shapes.arriving_bytes()));
}

}  // namespace

void add_experts_forward(Pass& pass, const ExpertBook& book, Cause cause) {
  const ExpertShapes& shapes = book.shapes();
  add_compute(pass, "router + permute", cause, joined(book.router_forward(), book.permute()));
  // How many tokens go where decides over sizes that the host must know before it can go on.
  if (shapes.dropless) add_synchronize(pass);
  add_dispatch(pass, shapes);
  add_compute(pass, "experts", cause, book.experts_forward());
  add_combine(pass, shapes);
  add_compute(pass, "unpermute", cause, book.unpermute());
}

void add_experts_backward(Pass& pass, const ExpertBook& book, bool activation_again) {
  const ExpertShapes& shapes = book.shapes();
  add_compute(pass, "unpermute backward", Cause::kBackward, book.unpermute_backward());
  add_dispatch(pass, shapes);
  if (activation_again) add_compute(pass, "activation again", Cause::kRecompute, book.activation_forward());
  add_compute(pass, "experts backward", Cause::kBackward, book.experts_backward());
  add_combine(pass, shapes);
  add_compute(pass, "permute + router backward", Cause::kBackward,
              joined(book.permute_backward(), book.router_backward()));
}

}  // namespace trainsim::lowering
