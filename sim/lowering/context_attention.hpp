// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "sim/lowering/kernels.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/pass.hpp"
#include "sim/lowering/tape.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Attention of ranks that share each sequence, as Transformer Engine does it. A rank holds two chunks of the
/// sequence, the i-th from the front and the i-th from the back, so that a causal mask leaves as much to
/// every rank. Time is that of the last rank, whose parts are the largest.
///
/// - p2p: c steps. In the first, queries meet the rank's own keys and values under the mask; in each other
///   one those of another rank, of which the mask leaves half. Meanwhile the keys and values at hand go on to
///   the next rank. Backward goes round again, with the gradients of keys and values one step behind.
/// - all_gather: keys and values of all ranks are gathered before attention, in backward once more, and their
///   gradients scattered. Compute waits for all of this.
/// - a2a: queries, keys and values are exchanged so that every rank has the whole sequence of 1/c of the
///   heads, and the output back; in backward their gradients. Compute waits for all of this.
///
/// REQUIRES: context_parallel >= 2.
void add_context_attention(Pass& pass, const KernelBook& book, plan::ContextCommunication communication,
                           program::Cause cause);
void add_context_attention_backward(Pass& pass, const KernelBook& book,
                                    plan::ContextCommunication communication);

/// Adds the tensors that attention's forward and backward hold beside those of a single rank, while they run.
/// Nothing with one context-parallel rank.
void add_context_buffers(Tape& tape, const Shapes& shapes, plan::ContextCommunication communication,
                         std::vector<TensorId>& forward, std::vector<TensorId>& backward);

}  // namespace trainsim::lowering
