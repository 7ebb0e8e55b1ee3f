// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/layer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/lowering/context_attention.hpp"
#include "sim/lowering/expert_layer.hpp"
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/kernels.hpp"
#include "sim/lowering/operator_checkpoint.hpp"

namespace trainsim::lowering {

namespace {

using program::Cause;
using program::CollectiveOp;

/// Builds the passes of a layer. Communication is written for tensor parallelism; `simplify` drops what is
/// not needed.
class LayerBuilder {
 public:
  /// `experts` are those of the layer, if it has some.
  LayerBuilder(const model::ModelSpec& model, const plan::ParallelPlan& plan, const KernelBook& book,
               const ExpertBook* experts)
      : plan_(plan),
        book_(book),
        experts_(experts),
        linears_(layer_linears(model, plan,
                               experts == nullptr ? model::LayerKind::kDense : model::LayerKind::kExpert)),
        shapes_(book.shapes()),
        bytes_(static_cast<double>(shapes_.residual_bytes())),
        gathered_bytes_(bytes_ * gathered_share(plan)) {}

  Pass forward() const { return forward(true); }
  /// Forward but for its last multiply and what follows.
  Pass again() const { return with_cause(forward(false), Cause::kRecompute); }
  Pass backward() const;
  Pass weights() const;

 private:
  Pass forward(bool whole) const;
  /// From the norm to the residual addition: an MLP, or experts.
  void mlp_forward(Pass& pass, Cause cause, bool whole = true) const;
  void mlp_backward(Pass& pass) const;
  void dense_forward(Pass& pass, const char* name, Cause cause, bool whole = true) const;
  void dense_backward(Pass& pass) const;
  /// Whether queries, keys and values come from latents.
  bool has_latents() const { return qkv().out == 0; }
  /// Whether all tokens pass through an MLP.
  bool has_mlp() const { return mlp_out().in > 0; }
  bool all_again() const {
    return plan_.recompute.repeats(experts_ == nullptr ? &plan::RecomputeModules::mlp
                                                       : &plan::RecomputeModules::experts);
  }
  double activation_elements() const { return static_cast<double>(shapes_.tokens * mlp_out().in); }
  void repeat_mlp(Pass& pass) const;
  void attention_core_backward(Pass& pass) const;
  void repeat_norm(Pass& pass) const {
    if (plan_.recompute.repeats(&plan::RecomputeModules::norm))
      add_compute(pass, "norm again", Cause::kRecompute, book_.norm_forward());
  }
  /// Before a column-parallel layer: with sequence parallelism its input is gathered.
  void gather_input(Pass& pass) const {
    if (shapes_.sequence_parallel) add_collective(pass, CollectiveOp::kAllGather, gathered_bytes_);
  }
  /// Adds what there is to cast to 8 bits, if anything.
  static void add_cast(Pass& pass, Cause cause, Kernels cast) {
    if (!cast.empty()) add_compute(pass, "cast to 8 bits", cause, std::move(cast));
  }
  double cast_elements() const { return book_.cast_elements(); }
  /// Whether backward gathers the input of a column-parallel layer. A checkpoint of operators has done it,
  /// and keeps what it has gathered.
  bool gathers_input_again() const { return shapes_.sequence_parallel && !plan_.recompute.by_operators(); }
  CastFrom cast_from(bool behind_norm) const { return book_.cast_from(behind_norm); }
  /// Before a row-parallel layer's backward: its output's gradient is cast, and gathered with sequence
  /// parallelism.
  void gather_gradient(Pass& pass) const {
    add_cast(pass, Cause::kBackward, book_.cast_gradient(cast_elements(), cast_from(false)));
    gather_input(pass);
  }
  /// After a row-parallel layer: partial sums are reduced, and scattered with sequence parallelism.
  void reduce_output(Pass& pass) const { add_collective(pass, reduction(), bytes_); }
  CollectiveOp reduction() const {
    return shapes_.sequence_parallel ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce;
  }
  void column_parallel_backward(Pass& pass, const char* name, const LinearShape& linear) const;
  Kernels row_parallel_backward(const char* name, const LinearShape& linear) const {
    Kernels inputs = book_.input_gradient(name, linear);
    if (plan_.splits_backward()) return inputs;
    const Kernels cast = book_.cast_input_again(static_cast<double>(shapes_.tokens * linear.in));
    return joined(joined(std::move(inputs), cast), book_.trained_gradients(name, linear));
  }
  void column_parallel_weights(Pass& pass, const char* name, const LinearShape& linear) const;
  const LinearShape& qkv() const { return linears_[0]; }
  const LinearShape& attention_output() const { return linears_[1]; }
  const LinearShape& mlp_in() const { return linears_[2]; }
  const LinearShape& mlp_out() const { return linears_[3]; }

  const plan::ParallelPlan& plan_;
  const KernelBook& book_;
  const ExpertBook* experts_;
  std::array<LinearShape, 4> linears_;
  const Shapes& shapes_;
  double bytes_;
  double gathered_bytes_;
};

Pass LayerBuilder::forward(bool whole) const {
  Pass pass;
  add_compute(pass, "norm", Cause::kForward, book_.norm_forward());
  if (!has_latents())
    add_cast(pass, Cause::kForward, book_.cast_input(cast_elements(), cast_from(true), qkv().modules()));
  gather_input(pass);
  const Kernels projected =
      has_latents() ? book_.latent_forward() : joined(book_.linear("qkv", qkv()), book_.rotary());
  const auto heads = static_cast<double>(shapes_.tokens * shapes_.output_width);
  const Kernels output = joined(book_.cast_input(heads, CastFrom::kKernel),
                                book_.linear("attention output", attention_output()));
  if (shapes_.context_parallel > 1) {
    add_compute(pass, "attention input", Cause::kForward, projected);
    add_context_attention(pass, book_, plan_.context_communication, Cause::kForward);
    add_compute(pass, "attention output", Cause::kForward, output);
  } else {
    add_compute(pass, "attention", Cause::kForward,
                joined(joined(projected, book_.attention_core_forward()), output));
  }
  reduce_output(pass);
  add_compute(pass, "residual + norm", Cause::kForward,
              joined(book_.residual_forward(), book_.norm_forward()));
  mlp_forward(pass, Cause::kForward, whole);
  if (whole) add_compute(pass, "residual", Cause::kForward, book_.residual_forward());
  return pass;
}

/// Shared experts are an MLP of their own beside the routed ones.
void LayerBuilder::mlp_forward(Pass& pass, Cause cause, bool whole) const {
  if (experts_ == nullptr)
    return dense_forward(pass, cause == Cause::kRecompute ? "mlp again" : "mlp", cause, whole);
  if (has_mlp()) dense_forward(pass, "shared experts", cause);
  add_experts_forward(pass, *experts_, cause);
  if (has_mlp()) add_compute(pass, "shared + routed experts", cause, book_.branch_add());
}

void LayerBuilder::dense_forward(Pass& pass, const char* name, Cause cause, bool whole) const {
  // A router takes what the norm puts out as well.
  const bool behind_norm = experts_ == nullptr && cause == Cause::kForward;
  add_cast(pass, cause, book_.cast_input(cast_elements(), cast_from(behind_norm), mlp_in().modules()));
  gather_input(pass);
  const Kernels inner =
      joined(book_.linear("mlp in", mlp_in()), book_.activation_forward(activation_elements()));
  if (!whole) return add_compute(pass, name, cause, inner);
  const Kernels cast = book_.cast_input(activation_elements(), CastFrom::kKernel);
  add_compute(pass, name, cause, joined(joined(inner, cast), book_.linear("mlp out", mlp_out())));
  reduce_output(pass);
}

/// The whole MLP as in forward, communication included, or its activation alone.
void LayerBuilder::repeat_mlp(Pass& pass) const {
  if (all_again()) {
    mlp_forward(pass, Cause::kRecompute);
  } else if (plan_.recompute.repeats(&plan::RecomputeModules::activation) && has_mlp()) {
    add_compute(pass, "activation again", Cause::kRecompute, book_.activation_forward(activation_elements()));
  }
}

/// Input gradient first, so that its reduction can run beside the weight gradient; with sequence parallelism
/// the saved input shard is gathered again beside the input gradient (Korthikanti et al. 2022,
/// section 4.2.2).
void LayerBuilder::column_parallel_backward(Pass& pass, const char* name, const LinearShape& linear) const {
  if (plan_.splits_backward()) {
    add_compute(pass, std::string(name) + " input gradient", Cause::kBackward,
                book_.input_gradient(name, linear));
    add_collective(pass, reduction(), bytes_);
    return;
  }
  const Seconds weights = book_.overlapped_time(reduction(), bytes_);
  const Seconds inputs =
      gathers_input_again() ? book_.overlapped_time(CollectiveOp::kAllGather, gathered_bytes_) : 0;
  if (gathers_input_again()) add_start(pass, CollectiveOp::kAllGather, gathered_bytes_);
  add_compute(pass, std::string(name) + " input gradient", Cause::kBackward,
              joined(book_.cast_gradient(static_cast<double>(shapes_.tokens * linear.out)),
                     book_.input_gradient(name, linear, inputs)));
  if (gathers_input_again()) add_join(pass);
  add_start(pass, reduction(), bytes_);
  add_compute(pass, std::string(name) + " weight gradient", Cause::kBackward,
              joined(book_.cast_input_again(cast_elements(), linear.modules()),
                     book_.trained_gradients(name, linear, weights)));
  add_join(pass);
}

/// The saved shard of the input is gathered only now.
void LayerBuilder::column_parallel_weights(Pass& pass, const char* name, const LinearShape& linear) const {
  gather_input(pass);
  add_compute(pass, std::string(name) + " weight gradient", Cause::kBackward,
              book_.trained_gradients(name, linear));
}

/// From the last layer to the first, as backward has left them.
Pass LayerBuilder::weights() const {
  Pass pass;
  add_compute(pass, "mlp out weight gradient", Cause::kBackward,
              book_.trained_gradients("mlp out", mlp_out()));
  column_parallel_weights(pass, "mlp in", mlp_in());
  add_compute(pass, "attention output weight gradient", Cause::kBackward,
              book_.trained_gradients("attention output", attention_output()));
  column_parallel_weights(pass, "qkv", qkv());
  return pass;
}

void LayerBuilder::attention_core_backward(Pass& pass) const {
  const bool again = plan_.recompute.repeats(&plan::RecomputeModules::core_attention);
  if (shapes_.context_parallel > 1) {
    if (again) add_context_attention(pass, book_, plan_.context_communication, Cause::kRecompute);
    add_context_attention_backward(pass, book_, plan_.context_communication);
    if (const Kernels rotary = book_.rotary(); !rotary.empty())
      add_compute(pass, "attention input backward", Cause::kBackward, rotary);
    return;
  }
  if (again) add_compute(pass, "attention core", Cause::kRecompute, book_.attention_core_forward());
  add_compute(pass, "attention backward", Cause::kBackward,
              joined(book_.attention_core_backward(), book_.rotary()));
}

void LayerBuilder::mlp_backward(Pass& pass) const {
  repeat_mlp(pass);
  if (experts_ != nullptr) {
    const bool activation = plan_.recompute.repeats(&plan::RecomputeModules::activation) && !all_again();
    add_experts_backward(pass, *experts_, activation);
    // Router and routed experts share their input.
    add_compute(pass, "input gradient add", Cause::kBackward, book_.branch_add());
  }
  has_mlp() ? dense_backward(pass) : repeat_norm(pass);
  // And shared experts with both.
  if (experts_ != nullptr && has_mlp())
    add_compute(pass, "input gradient add", Cause::kBackward, book_.branch_add());
}

void LayerBuilder::dense_backward(Pass& pass) const {
  gather_gradient(pass);
  add_compute(
      pass, "mlp backward", Cause::kBackward,
      joined(row_parallel_backward("mlp out", mlp_out()), book_.activation_backward(activation_elements())));
  repeat_norm(pass);
  column_parallel_backward(pass, "mlp in", mlp_in());
}

Pass LayerBuilder::backward() const {
  Pass pass;
  add_compute(pass, "residual backward", Cause::kBackward, book_.residual_backward());
  mlp_backward(pass);
  add_compute(pass, "norm + residual backward", Cause::kBackward,
              joined(book_.norm_backward(), book_.residual_backward()));
  gather_gradient(pass);
  add_compute(pass, "attention output backward", Cause::kBackward,
              row_parallel_backward("attention output", attention_output()));
  attention_core_backward(pass);
  repeat_norm(pass);
  if (has_latents()) {
    add_compute(pass, "latents backward", Cause::kBackward, book_.latent_backward());
  } else {
    column_parallel_backward(pass, "qkv", qkv());
  }
  add_compute(pass, "norm backward", Cause::kBackward, book_.norm_backward());
  return pass;
}

}  // namespace

Shapes::Shapes(const model::ModelSpec& model, const plan::ParallelPlan& plan)
    : tokens(plan.micro_batch_size * model.sequence_length / plan.context_parallel),
      sequence(model.sequence_length / plan.context_parallel),
      hidden(model.hidden_size),
      tensor_parallel(plan.tensor_parallel),
      context_parallel(plan.context_parallel),
      heads(model.num_attention_heads / plan.tensor_parallel),
      key_value_heads(std::max<std::int64_t>(1, model.num_key_value_heads / plan.tensor_parallel)),
      head_dim(model.head_dim),
      value_dim(model.value_dim()),
      query_width(heads * head_dim),
      key_value_width(key_value_heads * head_dim),
      taken_key_width(plan.framework == plan::Framework::kMegatron ? key_value_width : query_width),
      output_width(heads * value_dim),
      ffn(model.intermediate_size / plan.tensor_parallel),
      mlp_inputs(model.gated() ? 2 : 1),
      vocab(model::padded_vocabulary(model.vocab_size, plan.vocab_padding, plan.tensor_parallel) /
            plan.tensor_parallel),
      element(plan.element_bytes()),
      residual_elements(0),
      sequence_parallel(plan.sequence_parallel && plan.tensor_parallel > 1) {
  residual_elements = tokens * hidden / (sequence_parallel ? tensor_parallel : 1);
}

bool skips_last_multiply(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                         model::LayerKind kind) {
  const plan::Recompute& recompute = plan.recompute;
  const bool by_layer = recompute.granularity == plan::RecomputeGranularity::kFull &&
                        (recompute.method == plan::RecomputeMethod::kBlock || recompute.layers == 1);
  const bool as_functions = plan.lora.active() || plan.transformer_engine ||
                            (plan.uses_fp8() && plan.fusion != plan::Fusion::kCompiled);
  return plan.checkpoint_early_stop && by_layer && kind == model::LayerKind::kDense && model.dropout == 0 &&
         !as_functions;
}

LayerPasses layer_passes(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                         const cost::KernelModel& kernels, const RingEstimate& ring,
                         const RingEstimate& context_ring, model::LayerKind kind) {
  const KernelBook book(model, plan, kernels, ring, context_ring);
  std::optional<ExpertBook> experts;
  if (kind == model::LayerKind::kExpert) experts.emplace(model, plan, kernels, book);
  const LayerBuilder builder(model, plan, book, experts ? &*experts : nullptr);
  const auto ready = [&](Pass pass) {
    return simplify(std::move(pass), plan.tensor_parallel, plan.overlap_tensor_communication);
  };
  LayerPasses passes;
  passes.forward = ready(builder.forward());
  passes.backward = ready(builder.backward());
  if (plan.splits_backward()) passes.weights = ready(builder.weights());
  if (plan.recompute.by_operators()) {
    passes.recompute = ready(operators_again(model, plan, book));
  } else if (skips_last_multiply(model, plan, kind)) {
    passes.recompute = ready(builder.again());
  } else {
    passes.recompute = with_cause(passes.forward, Cause::kRecompute);
  }
  return passes;
}

}  // namespace trainsim::lowering
