// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "sim/cost/kernel_model.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/job.hpp"

namespace trainsim::lowering {

/// Kernels of a list, in order.
using Kernels = std::vector<program::Kernel>;

/// Who made what is cast to 8 bits just before: a norm, another kernel of this rank, or other ranks, from
/// whom it was gathered.
enum class CastFrom { kNorm, kKernel, kRanks };

/// One list behind the other.
Kernels joined(Kernels first, const Kernels& second);

/// The kernels that a framework launches for each part of a transformer, by fusion mode. Byte counts per
/// element are derived in docs/modelling.md ("Memory-bound kernels").
class KernelBook {
 public:
  /// `ring` is that of the tensor-parallel group, `context_ring` that of the context-parallel one.
  KernelBook(const model::ModelSpec& model, const plan::ParallelPlan& plan, const cost::KernelModel& kernels,
             const RingEstimate& ring, const RingEstimate& context_ring = {});

  Kernels norm_forward() const;
  Kernels norm_backward() const;
  /// Bias, dropout and residual addition after a row-parallel layer.
  Kernels residual_forward() const;
  Kernels residual_backward() const;
  /// Adds what one more of several layers beside each other has put out, or the gradient of their input.
  Kernels branch_add() const;
  Kernels activation_forward() const { return activation_forward(mlp_elements()); }
  Kernels activation_backward() const { return activation_backward(mlp_elements()); }
  /// The same of so many elements behind the activation.
  Kernels activation_forward(double elements) const;
  Kernels activation_backward(double elements) const;
  /// Nothing for latent attention, whose projections do it.
  Kernels rotary() const;
  /// Latent attention from the norm to queries, keys and values with their heads: projections, norms of
  /// latents, rotation, and putting both parts of queries and keys together.
  Kernels latent_forward() const;
  Kernels latent_backward() const;
  /// Scores, softmax, dropout and values: what selective recomputation runs again.
  Kernels attention_core_forward() const;
  Kernels attention_core_backward() const;
  /// The same where ranks share the sequence, by how they exchange it (context_attention.hpp).
  /// A step of ring attention on a rank: its own part under the mask, or with the keys and values of another
  /// rank that has sent them; `communication` is how long the next ones are on their way beside it. And what
  /// puts the parts of the output together.
  Kernels ring_attention(bool own, bool backward, Seconds communication) const;
  Kernels ring_outputs() const;
  /// Adds what a step of backward has made to the sums of the query gradients, and of those of keys and
  /// values, which are on their way around the ring.
  Kernels ring_gradients(bool own) const;
  /// Attention over gathered keys and values, put in order before.
  Kernels gathered_attention() const;
  Kernels gathered_attention_backward() const;
  /// Attention of whole sequences and a share of the heads, and changes of layout around an exchange of
  /// `width` columns.
  Kernels exchanged_attention(bool backward) const;
  Kernels exchange_layout(std::int64_t width) const;
  /// Time of a shift of `bytes` around the ring of context-parallel ranks, with nothing else on the network.
  Seconds shift_time(double bytes) const;
  /// Embedding lookup, positions and dropout; and the scatter-add of its gradient.
  Kernels embedding_forward() const;
  Kernels embedding_backward() const;
  /// Softmax cross-entropy over the logits, in fp32.
  Kernels loss_forward() const;
  Kernels loss_backward() const;

  /// A linear layer on this rank, with the adapter beside it, if it has one: forward, input gradient, and
  /// weight gradient; the latter is accumulated in gradient precision, in the multiply itself or in a pass of
  /// its own. `communication` is how long a collective of the rank runs beside the multiply. Weights are cast
  /// to 8 bits where that is done each time; inputs and gradients are there.
  Kernels linear(const char* name, const LinearShape& shape) const;
  Kernels input_gradient(const char* name, const LinearShape& shape, Seconds communication = 0) const;
  Kernels weight_gradient(const char* name, const LinearShape& shape, Seconds communication = 0) const;
  /// Makes 8-bit copies of so many elements of a linear layer's input, or of its output's gradient, one for
  /// each multiply that takes them; nothing without fp8. A norm of Transformer Engine puts out 8 bits itself,
  /// where scales are known or of few elements. With scales of rows each of the layer's `modules` makes its
  /// own.
  Kernels cast_input(double elements, CastFrom from, std::int64_t modules = 1) const;
  Kernels cast_gradient(double elements, CastFrom from = CastFrom::kKernel) const;
  /// Elements of a residual-stream tensor that are cast: this rank's share before it is gathered, or all of
  /// them afterwards; and where such a tensor comes from then.
  double cast_elements() const;
  CastFrom cast_from(bool behind_norm) const;
  /// The copy of an input for the weight's gradient, where the input itself was kept.
  Kernels cast_input_again(double elements, std::int64_t modules = 1) const;
  /// Gradients of what is trained of a layer's linear: its weight, its adapter (whose share of the input
  /// gradient is here, too), or nothing.
  Kernels trained_gradients(const char* name, const LinearShape& shape, Seconds communication = 0) const;
  /// Time of a tensor-parallel collective over `bytes` with nothing else on the network; 0 when multiplies do
  /// not run beside communication.
  Seconds overlapped_time(program::CollectiveOp op, double bytes) const;

  const Shapes& shapes() const { return shapes_; }

 private:
  /// A kernel that moves `bytes_per_element` (counted for 2-byte elements) over `elements`.
  program::Kernel pass(const char* name, double elements, double bytes_per_element, int launches = 1) const;
  /// The multiply of a linear layer.
  program::Kernel multiply(const char* name, const LinearShape& shape) const;
  /// Of a single module.
  Kernels module(const char* name, const LinearShape& shape) const;
  Kernels module_input_gradient(const char* name, const LinearShape& shape, Seconds communication) const;
  Kernels module_weight_gradient(const char* name, const LinearShape& shape, Seconds communication) const;
  Kernels adapter_gradients(const LinearShape& shape) const;
  /// The sum of what the modules of a layer make of their input's gradient.
  Kernels input_gradient_add(const LinearShape& shape) const;
  /// Casts the weight to 8 bits, if it is done each time: for forward, or for the input's gradient.
  Kernels cast_weight(const LinearShape& shape, bool backward) const;
  /// torchao's copy of so many elements for a multiply along their columns.
  Kernels column_copy(double elements) const;
  /// Scales of rows are multiplied onto what backward's multiplies put out, in a kernel of its own.
  Kernels rescaled(const LinearShape& shape, double elements) const;
  program::Kernel random_pass(const char* name, double elements, double bytes_per_element) const;
  cost::AttentionShape attention_shape() const;
  Kernels standard_core_forward() const;
  Kernels standard_core_backward() const;
  double score_elements() const;
  double latent_elements(const LinearShape& linear) const {
    return static_cast<double>(shapes_.tokens * linear.out);
  }
  double latent_inputs(const LinearShape& linear) const {
    return static_cast<double>(shapes_.tokens * linear.in);
  }
  /// Elements of queries, keys and values.
  double head_elements() const {
    return static_cast<double>(shapes_.tokens * (2 * shapes_.query_width + shapes_.output_width));
  }
  double mlp_elements() const { return static_cast<double>(shapes_.tokens * shapes_.ffn); }

  const model::ModelSpec& model_;
  const plan::ParallelPlan& plan_;
  const cost::KernelModel& kernels_;
  RingEstimate ring_;
  RingEstimate context_ring_;
  Shapes shapes_;
};

}  // namespace trainsim::lowering
