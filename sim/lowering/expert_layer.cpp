// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/expert_layer.hpp"

#include <utility>

namespace trainsim::lowering {

namespace {

using program::Cause;
using program::CollectiveOp;

/// What goes with copies of tokens between ranks.
enum class Cargo {
  /// The copies, or gradients of what experts have made of them.
  kTokens,
  /// These, and the probabilities (or their gradients), by which experts weigh what they put out.
  kTokensAndProbabilities,
};

/// Tokens to their experts: to other ranks, and from those that share the experts.
void add_dispatch(Pass& pass, const ExpertShapes& shapes, Cargo cargo) {
  const bool weighed = cargo == Cargo::kTokensAndProbabilities;
  if (shapes.expert_parallel > 1) {
    add_exchange(pass, static_cast<double>(shapes.arriving_bytes()));
    if (weighed) add_exchange(pass, static_cast<double>(shapes.arriving_probability_bytes()));
  }
  if (shapes.expert_tensor > 1) {
    add_collective(pass, CollectiveOp::kAllGather, static_cast<double>(shapes.received_bytes()));
    if (weighed)
      add_collective(pass, CollectiveOp::kAllGather,
                     static_cast<double>(shapes.received_probability_bytes()));
  }
}

/// And back: partial sums are reduced to the ranks that the tokens came over.
void add_combine(Pass& pass, const ExpertShapes& shapes, Cargo cargo) {
  const bool weighed = cargo == Cargo::kTokensAndProbabilities;
  if (shapes.expert_tensor > 1) {
    add_collective(pass, CollectiveOp::kReduceScatter, static_cast<double>(shapes.received_bytes()));
    if (weighed)
      add_collective(pass, CollectiveOp::kReduceScatter,
                     static_cast<double>(shapes.received_probability_bytes()));
  }
  if (shapes.expert_parallel > 1) {
    add_exchange(pass, static_cast<double>(shapes.arriving_bytes()));
    if (weighed) add_exchange(pass, static_cast<double>(shapes.arriving_probability_bytes()));
  }
}

}  // namespace

void add_experts_forward(Pass& pass, const ExpertBook& book, Cause cause) {
  const ExpertShapes& shapes = book.shapes();
  add_compute(pass, "router + permute", cause, joined(book.router_forward(), book.permute()));
  // How many tokens go where decides over sizes that the host must know before it can go on; a capacity does
  // not change that, unless experts are padded up to it (Megatron-LM's --moe-pad-expert-input-to-capacity).
  add_synchronize(pass);
  add_dispatch(pass, shapes, Cargo::kTokensAndProbabilities);
  add_compute(pass, "experts", cause, book.experts_forward());
  add_combine(pass, shapes, Cargo::kTokens);
  add_compute(pass, "unpermute", cause, book.unpermute());
}

void add_experts_backward(Pass& pass, const ExpertBook& book, bool activation_again) {
  const ExpertShapes& shapes = book.shapes();
  add_compute(pass, "unpermute backward", Cause::kBackward, book.unpermute_backward());
  add_dispatch(pass, shapes, Cargo::kTokens);
  if (activation_again) add_compute(pass, "activation again", Cause::kRecompute, book.activation_forward());
  add_compute(pass, "experts backward", Cause::kBackward, book.experts_backward());
  add_combine(pass, shapes, Cargo::kTokensAndProbabilities);
  add_compute(pass, "permute + router backward", Cause::kBackward,
              joined(book.permute_backward(), book.router_backward()));
}

}  // namespace trainsim::lowering
