// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cost/kernel_model.hpp"
#include "sim/lowering/pass.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/job.hpp"

namespace trainsim::lowering {

/// Sizes of one micro-batch on one tensor- and context-parallel rank.
struct Shapes {
  Shapes(const model::ModelSpec& model, const plan::ParallelPlan& plan);

  /// Tokens of a micro-batch that this rank holds, b s / c; and of one sequence, s / c.
  std::int64_t tokens;
  std::int64_t sequence;
  std::int64_t hidden;
  std::int64_t tensor_parallel;
  std::int64_t context_parallel;
  /// Query and key/value heads of this rank; key/value heads are replicated when there are fewer than ranks.
  std::int64_t heads;
  std::int64_t key_value_heads;
  std::int64_t head_dim;
  std::int64_t value_dim;
  /// Width of queries, of keys (or values), of attention's output and of the MLP on this rank.
  std::int64_t query_width;
  std::int64_t key_value_width;
  /// Width of the keys that attention takes: as many heads as queries have where the framework repeats those
  /// of a group.
  std::int64_t taken_key_width;
  std::int64_t output_width;
  std::int64_t ffn;
  /// Projections into the MLP: 2 when gated.
  std::int64_t mlp_inputs;
  /// Rows of the padded vocabulary on this rank.
  std::int64_t vocab;
  /// Bytes of an activation element.
  std::int64_t element;
  /// Elements of a residual-stream tensor as this rank stores it: b s h, divided by t with sequence
  /// parallelism.
  std::int64_t residual_elements;
  bool sequence_parallel;

  /// Bytes of this rank's keys and values together as attention takes them, and of its queries.
  Bytes key_value_bytes() const { return 2 * tokens * taken_key_width * element; }
  Bytes query_bytes() const { return tokens * query_width * element; }
  /// Bytes of the whole residual-stream tensor.
  Bytes residual_bytes() const { return tokens * hidden * element; }
};

/// How long collectives of a group take with nothing else on the network.
struct RingEstimate {
  /// What a member sends.
  BytesPerSecond rate = 1.0;
  /// Fixed time, and what each step adds.
  Seconds start = 0;
  Seconds step = 0;

  /// Time of a collective of `members` over a tensor of `bytes`.
  Seconds time(program::CollectiveOp op, std::int64_t members, double bytes) const {
    return start + static_cast<double>(program::ring_steps(op, members)) * step +
           program::bytes_per_member(op, members, bytes) / rate;
  }
};

/// Forward and backward of one transformer layer on one rank.
struct LayerPasses {
  Pass forward;
  /// Input and weight gradients; with selective recomputation the attention core runs again inside.
  Pass backward;
  /// Weight gradients, where the schedule has slots for them; backward is without them then.
  Pass weights;
  /// What full recomputation, or that by operators, runs again before backward.
  Pass recompute;
};
/// Whether full recomputation leaves out the layer's last multiply, with what follows it: backward needs its
/// input alone, and plan.checkpoint_early_stop. Dropout keeps a mask, so that all runs. Functions written in
/// Python (of 8-bit layers that are not compiled, of Transformer Engine) save their inputs only when they
/// have run. Layers that share a checkpoint with a later one, and those with experts or adapters, run to
/// their end.
bool skips_last_multiply(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                         model::LayerKind kind);
/// `ring` is that of the tensor-parallel group, `context_ring` that of the context-parallel one.
LayerPasses layer_passes(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                         const cost::KernelModel& kernels, const RingEstimate& ring,
                         const RingEstimate& context_ring = {},
                         model::LayerKind kind = model::LayerKind::kDense);

/// A linear layer's weight on one tensor-parallel rank.
struct LinearShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
  /// Whether an adapter is trained beside it.
  bool adapted = false;
  /// Whether its multiplies run in 8 bits.
  bool fp8 = false;
  /// Columns of `out` of each module that multiplies by itself: query, key and value; gate and up. Empty: all
  /// are one.
  std::vector<std::int64_t> columns = {};

  std::int64_t modules() const { return columns.empty() ? 1 : static_cast<std::int64_t>(columns.size()); }
  /// Each module as a layer of its own.
  std::vector<LinearShape> apart() const;
};
/// Those of a layer: qkv, attention output, MLP in (both inputs of a gated one), MLP out. Where there are
/// experts, the MLP is that of the shared ones, of width 0 if there are none. Latent attention has no qkv
/// (width 0), but the projections of latent_linears().
std::array<LinearShape, 4> layer_linears(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                         model::LayerKind kind = model::LayerKind::kDense);

/// Projections of latent attention: to the queries' latent, from it to queries, to the latent of keys and
/// values with the rotated part of keys, from it to the rest of keys and to values. Without a latent for
/// queries the first has width 0; without latent attention there are none.
std::vector<LinearShape> latent_linears(const model::ModelSpec& model, const plan::ParallelPlan& plan);

/// Parameters of one layer, of the embedding and of the head on one tensor-parallel rank, adapters included.
/// Norms and the biases of row-parallel layers are replicated. `head_holds_copy` is for a last stage that is
/// not also the first. Routed experts are counted, those of the rank.
std::int64_t layer_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                       model::LayerKind kind = model::LayerKind::kDense);
std::int64_t embedding_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan);
std::int64_t head_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                      bool head_holds_copy);
/// What of `parameters` that are no layer's, and of a layer's, is trained: all, or only adapters.
std::int64_t trained_of(std::int64_t parameters, const plan::ParallelPlan& plan);
std::int64_t trained_layer_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                               model::LayerKind kind = model::LayerKind::kDense);

}  // namespace trainsim::lowering
