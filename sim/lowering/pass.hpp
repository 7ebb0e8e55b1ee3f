// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace trainsim::lowering {

/// What a step of a pass does.
enum class StepKind : std::uint8_t {
  /// Runs kernels.
  kCompute,
  /// A collective that compute waits for.
  kCollective,
  /// A collective that runs beside the following steps, until kJoin.
  kStartCollective,
  /// Waits for the collective of its group that was started last.
  kJoin,
  /// The host waits until the GPU has come here, because it needs a number from it.
  kSynchronize,
};

/// One step of a pass through a layer, the embedding or the head.
struct Step {
  StepKind kind = StepKind::kCompute;
  program::Cause cause = program::Cause::kForward;
  std::string name;
  std::vector<program::Kernel> kernels;
  program::CollectiveOp op = program::CollectiveOp::kAllReduce;
  /// Who takes part in a collective.
  program::GroupKind group = program::GroupKind::kTensor;
  /// Bytes of the whole tensor that a collective works on.
  double bytes = 0;
};

/// Steps in order.
using Pass = std::vector<Step>;

/// Appends compute, a blocking tensor-parallel collective, or an overlapped one with its join.
void add_compute(Pass& pass, std::string name, program::Cause cause, std::vector<program::Kernel> kernels);
void add_collective(Pass& pass, program::CollectiveOp op, double bytes,
                    program::GroupKind group = program::GroupKind::kTensor);
void add_start(Pass& pass, program::CollectiveOp op, double bytes,
               program::GroupKind group = program::GroupKind::kTensor);
void add_join(Pass& pass, program::GroupKind group = program::GroupKind::kTensor);
/// Appends an all-to-all between the ranks that share experts, each of which has `bytes` for all.
void add_exchange(Pass& pass, double bytes);
void add_synchronize(Pass& pass);

/// A pass that takes a measured time instead of that of its modelled kernels, and does the same operations.
Pass measured_pass(const char* name, const Pass& replaced, program::Cause cause, program::KernelKind kind,
                   Seconds seconds);

/// The pass without tensor-parallel communication when there is one such rank, without its overlap when
/// `overlap` is false, and with neighbouring compute steps of one cause merged, as nothing separates them.
Pass simplify(Pass pass, std::int64_t tensor_parallel, bool overlap);

/// The same steps, with every compute booked as `cause`.
Pass with_cause(Pass pass, program::Cause cause);

}  // namespace trainsim::lowering
