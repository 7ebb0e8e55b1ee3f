// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/lowering/expert_kernels.hpp"
#include "sim/lowering/pass.hpp"
#include "sim/program/program.hpp"

namespace trainsim::lowering {

/// Appends what routed experts do between the norm before them and the residual addition behind them, as
/// Megatron-LM's MoELayer with its all-to-all dispatcher does: tokens are routed, sorted by expert,
/// exchanged, gathered where ranks share an expert, worked on, and all of that back. Compute waits for each
/// exchange. `cause` is what the compute counts as.
void add_experts_forward(Pass& pass, const ExpertBook& book, program::Cause cause);

/// The same backward; each exchange again, in the other direction. With `activation_again` the activation is
/// run again for it.
void add_experts_backward(Pass& pass, const ExpertBook& book, bool activation_again);

}  // namespace trainsim::lowering
