// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::lowering {

/// Sizes of the routed experts of a layer, and of one micro-batch on its way through them, on one rank.
///
/// Tokens are taken to be spread evenly over experts, times the model's `imbalance` for the rank that gets
/// most. All ranks are as slow as that one, because each exchange waits for it.
struct ExpertShapes {
  ExpertShapes(const model::ModelSpec& model, const plan::ParallelPlan& plan);

  /// Tokens that this rank routes: b s / (t c).
  std::int64_t tokens;
  /// Copies of them that it sends, k for each token; and that its own experts work on, those of all ranks
  /// that share an expert together, on the rank that gets most.
  std::int64_t copies;
  std::int64_t received;
  /// What the rank that gets most has, relative to an even share; 1 where each has all experts.
  double load;
  /// All experts of a layer, and those on this rank.
  std::int64_t experts;
  std::int64_t local;
  /// Copies that one of them works on.
  std::int64_t per_expert;
  std::int64_t hidden;
  /// Width of an expert's inner layer on this rank, and of its input projection.
  std::int64_t ffn;
  std::int64_t ffn_inputs;
  /// Bytes of an activation element.
  std::int64_t element;
  std::int64_t expert_parallel;
  std::int64_t expert_tensor;

  /// Bytes of the copies that a rank sends, and of those that it receives from ranks of its own place in
  /// their experts, when it gets most; and of all that its experts work on.
  Bytes sent_bytes() const { return copies * hidden * element; }
  Bytes arriving_bytes() const { return received / expert_tensor * hidden * element; }
  Bytes received_bytes() const { return received * hidden * element; }
  /// Bytes of the probabilities, in fp32, that go with arriving_bytes() and with received_bytes().
  Bytes arriving_probability_bytes() const { return received / expert_tensor * 4; }
  Bytes received_probability_bytes() const { return received * 4; }
};

/// Weights of one routed expert on one rank: into its inner layer (both inputs of a gated one), and out of
/// it.
std::array<LinearShape, 2> expert_linears(const model::ModelSpec& model, const plan::ParallelPlan& plan);
/// The same of the shared experts together; width 0 without any.
std::array<LinearShape, 2> shared_expert_linears(const model::ModelSpec& model,
                                                 const plan::ParallelPlan& plan);

/// Parameters of the routed experts of a layer on one rank.
std::int64_t expert_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan);

}  // namespace trainsim::lowering
