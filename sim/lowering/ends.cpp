// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/ends.hpp"

#include <utility>

#include "sim/lowering/fp8.hpp"
#include "sim/lowering/kernels.hpp"
#include "sim/lowering/state.hpp"

namespace trainsim::lowering {

namespace {

using program::Cause;
using program::CollectiveOp;

CollectiveOp reduction(const Shapes& shapes) {
  return shapes.sequence_parallel ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce;
}

Pass head_forward(const KernelBook& book) {
  const Shapes& shapes = book.shapes();
  Pass pass;
  add_compute(pass, "final norm", Cause::kForward, book.norm_forward());
  if (shapes.sequence_parallel) {
    add_collective(pass, CollectiveOp::kAllGather, static_cast<double>(shapes.residual_bytes()));
  }
  Kernels kernels = book.linear("logits", {shapes.hidden, shapes.vocab});
  for (program::Kernel& kernel : book.loss_forward()) kernels.push_back(std::move(kernel));
  add_compute(pass, "logits + loss", Cause::kForward, kernels);
  // Maximum, target logit and sum of exponentials: one fp32 number per token each (Megatron-LM's
  // vocabulary-parallel cross-entropy).
  for (int i = 0; i < 3; ++i) {
    add_collective(pass, CollectiveOp::kAllReduce, 4.0 * static_cast<double>(shapes.tokens));
  }
  return pass;
}

Kernels output_weights(const KernelBook& book, Seconds communication) {
  const Shapes& shapes = book.shapes();
  return book.trained_gradients("logits", {shapes.hidden, shapes.vocab}, communication);
}

Pass head_input_gradients(const KernelBook& book) {
  const Shapes& shapes = book.shapes();
  Pass pass;
  add_compute(pass, "loss + logits input gradient", Cause::kBackward,
              joined(book.loss_backward(), book.input_gradient("logits", {shapes.hidden, shapes.vocab})));
  add_collective(pass, reduction(shapes), static_cast<double>(shapes.residual_bytes()));
  add_compute(pass, "final norm backward", Cause::kBackward, book.norm_backward());
  return pass;
}

Pass head_weights(const KernelBook& book) {
  const Shapes& shapes = book.shapes();
  Pass pass;
  if (shapes.sequence_parallel)
    add_collective(pass, CollectiveOp::kAllGather, static_cast<double>(shapes.residual_bytes()));
  add_compute(pass, "logits weight gradient", Cause::kBackward, output_weights(book, 0));
  return pass;
}

Pass head_backward(const KernelBook& book) {
  const Shapes& shapes = book.shapes();
  const auto bytes = static_cast<double>(shapes.residual_bytes());
  Pass pass;
  // A column-parallel layer, as in the layers: the saved shard of its input is gathered again for the weight
  // gradient.
  const Seconds weights = book.overlapped_time(reduction(shapes), bytes);
  const Seconds inputs = shapes.sequence_parallel ? book.overlapped_time(CollectiveOp::kAllGather, bytes) : 0;
  const Kernels kernels =
      joined(book.loss_backward(), book.input_gradient("logits", {shapes.hidden, shapes.vocab}, inputs));
  if (shapes.sequence_parallel) add_start(pass, CollectiveOp::kAllGather, bytes);
  add_compute(pass, "loss + logits input gradient", Cause::kBackward, kernels);
  if (shapes.sequence_parallel) add_join(pass);
  add_start(pass, reduction(shapes), bytes);
  add_compute(pass, "logits weight gradient", Cause::kBackward, output_weights(book, weights));
  add_join(pass);
  add_compute(pass, "final norm backward", Cause::kBackward, book.norm_backward());
  return pass;
}

}  // namespace

Ends build_ends(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                const cost::KernelModel& kernels, const RingEstimate& ring) {
  const KernelBook book(model, plan, kernels, ring);
  const Shapes& shapes = book.shapes();
  const auto bytes = static_cast<double>(shapes.residual_bytes());
  const auto ready = [&](Pass pass) {
    return simplify(std::move(pass), plan.tensor_parallel, plan.overlap_tensor_communication);
  };
  Ends ends;
  add_compute(ends.embedding_forward, "embedding", Cause::kForward, book.embedding_forward());
  add_collective(ends.embedding_forward, reduction(shapes), bytes);
  if (shapes.sequence_parallel) add_collective(ends.embedding_backward, CollectiveOp::kAllGather, bytes);
  add_compute(ends.embedding_backward, "embedding gradient", Cause::kBackward, book.embedding_backward());
  ends.embedding_forward = ready(std::move(ends.embedding_forward));
  ends.embedding_backward = ready(std::move(ends.embedding_backward));
  ends.head_forward = ready(head_forward(book));
  ends.head_backward = ready(plan.splits_backward() ? head_input_gradients(book) : head_backward(book));
  if (plan.splits_backward()) ends.head_weights = ready(head_weights(book));
  return ends;
}

namespace {

/// InternEvo's step on γ bytes of each gradient (hybrid_zero_optim.py, PyTorch's AdamW without fusion):
/// buckets are filled, divided by the number of replicas and emptied again (6 γ of all gradients); of a
/// rank's own ones there are fp32 copies for the norm (γ + 4, and 4 to read them), one tensor (2 γ) and that
/// in fp32 (γ + 4), which is scaled (8). Adam's passes take 8 bytes for the decay, 20 for each moment, 24 for
/// the denominator and 16 for the update; and new parameters are copied.
/// `parameters` of the rank's share, `held` in all.
Kernels internevo_update(const plan::ParallelPlan& plan, const cost::KernelModel& kernels, double parameters,
                         double held) {
  const auto gradient = static_cast<double>(plan.gradient_bytes);
  const auto stream = [&kernels](const char* name, double bytes, int launches) {
    return kernels.stream(name, bytes, launches, program::KernelKind::kOptimizer);
  };
  Kernels work;
  if (plan.data_context_ranks() > 1 && plan.sharding != plan::Sharding::kZero3)
    work.push_back(stream("gradient buckets", 6.0 * held * gradient, 3));
  work.push_back(stream("gradient norm", parameters * (gradient + 8.0), 2));
  work.push_back(stream("gradients to fp32", parameters * (3.0 * gradient + 12.0), 3));
  work.push_back(
      stream(plan::to_string(plan.optimizer).c_str(), parameters * (8.0 + 2.0 * 20.0 + 24.0 + 16.0), 9));
  work.push_back(stream("parameters from fp32", parameters * (4.0 + kernels.element_bytes()), 1));
  work.push_back(stream("clear gradients", held * gradient, 1));
  return work;
}

}  // namespace

Pass optimizer_pass(const plan::ParallelPlan& plan, const cost::KernelModel& kernels, double parameters,
                    double held, double cast) {
  const auto gradient = static_cast<double>(plan.optimizer_gradient_bytes());
  const auto stream = [&kernels](const char* name, double bytes, int launches) {
    return kernels.stream(name, bytes, launches, program::KernelKind::kOptimizer);
  };
  const bool megatron = plan.framework == plan::Framework::kMegatron;
  Pass pass;
  if (plan.framework == plan::Framework::kInternEvo) {
    add_compute(pass, "optimizer", Cause::kOptimizer, internevo_update(plan, kernels, parameters, held));
    return pass;
  }
  Kernels work;
  // Before Megatron-LM adds up a bucket it looks for numbers that are none, and divides by the number of
  // replicas.
  if (megatron) work.push_back(stream("gradient check", held * gradient, 1));
  if (megatron && plan.data_context_ranks() > 1)
    work.push_back(stream("gradient average", 2.0 * held * gradient, 1));
  work.push_back(stream("gradient norm", parameters * gradient, 2));
  if (plan.optimizer_gradient_bytes() < 4) {
    work.push_back(stream("gradients to fp32", parameters * (gradient + 4.0), 1));
  }
  // Gradient (4), master weight and moments (read and written), and the new parameter, unless it is its own
  // master: Megatron-LM copies it afterwards. FSDP writes it when it casts what it is about to gather.
  const double copy = plan.stores_fp32() ? 0.0 : kernels.element_bytes();
  const double update = 4.0 + 2.0 * (4.0 + moment_bytes(plan.optimizer)) + (megatron ? 0.0 : copy);
  work.push_back(stream(plan::to_string(plan.optimizer).c_str(), parameters * update, 4));
  if (megatron && copy > 0) work.push_back(stream("parameters from fp32", parameters * (4.0 + copy), 1));
  if (cast > 0) {
    const double bytes = cast_bytes(plan.fp8.recipe, 2, false);
    work.push_back(stream("weights to 8 bits", cast * bytes, 1));
  }
  work.push_back(stream("clear gradients", held * gradient, 1));
  add_compute(pass, "optimizer", Cause::kOptimizer, work);
  return pass;
}

}  // namespace trainsim::lowering
