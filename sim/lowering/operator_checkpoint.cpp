// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/operator_checkpoint.hpp"

#include <array>
#include <utility>
#include <vector>

#include "sim/lowering/context_attention.hpp"
#include "sim/lowering/fp8.hpp"

namespace trainsim::lowering {

using program::Cause;
using program::CollectiveOp;

namespace {

/// Counts multiplies as torchtitan's policy does.
class Counter {
 public:
  explicit Counter(bool counts) : counts_(counts) {}
  bool saves_next() { return counts_ && ++calls_ % 2 == 1; }

 private:
  bool counts_;
  int calls_ = 0;
};

/// The modules of a layer whose outputs are not saved; of no columns if all are.
LinearShape repeated(const LinearShape& layer, const std::vector<bool>& saved) {
  LinearShape again = {layer.in, 0, layer.adapted, layer.fp8};
  const std::vector<LinearShape> modules = layer.apart();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (saved[i]) continue;
    again.columns.push_back(modules[i].out);
    again.out += modules[i].out;
  }
  return again;
}

/// Writes the steps of operators_again().
class Repetition {
 public:
  Repetition(const model::ModelSpec& model, const plan::ParallelPlan& plan, const KernelBook& book)
      : model_(model),
        plan_(plan),
        book_(book),
        saved_(model, plan),
        linears_(layer_linears(model, plan)),
        qkv_(repeated(linears_[0], {saved_.queries, saved_.keys, saved_.values})),
        mlp_in_(repeated(linears_[2], {saved_.mlp_gate, saved_.mlp_up})),
        shapes_(book.shapes()) {}

  Pass run() {
    add(book_.norm_forward());
    gather_input(qkv_);
    add_attention();
    add_output_projection();
    add(joined(book_.residual_forward(), book_.norm_forward()));
    gather_input(mlp_in_);
    add_mlp();
    return std::move(pass_);
  }

 private:
  void add(Kernels kernels) {
    if (!kernels.empty()) add_compute(pass_, "operators again", Cause::kRecompute, std::move(kernels));
  }
  /// What column-parallel layers take.
  void gather_input(const LinearShape& again) {
    const auto modules = static_cast<std::int64_t>(again.columns.size());
    add(book_.cast_input(book_.cast_elements(), book_.cast_from(true), modules));
    if (!shapes_.sequence_parallel) return;
    add_collective(pass_, CollectiveOp::kAllGather,
                   static_cast<double>(shapes_.residual_bytes()) * gathered_share(plan_));
  }
  Kernels multiply(const char* name, const LinearShape& again) const {
    return again.out == 0 ? Kernels{} : book_.linear(name, again);
  }
  void add_attention() {
    add(joined(multiply("qkv", qkv_), book_.rotary()));
    if (saves_attention(model_)) return;
    if (shapes_.context_parallel > 1) {
      add_context_attention(pass_, book_, plan_.context_communication, Cause::kRecompute);
    } else {
      add(book_.attention_core_forward());
    }
  }
  void add_output_projection() {
    const bool unused = shapes_.sequence_parallel && plan_.fusion == plan::Fusion::kCompiled;
    if (saved_.attention_output || unused) return;
    add(joined(book_.cast_input(static_cast<double>(shapes_.tokens * linears_[1].in), CastFrom::kKernel),
               book_.linear("attention output", linears_[1])));
    if (!shapes_.sequence_parallel)
      add_collective(pass_, CollectiveOp::kAllReduce, static_cast<double>(shapes_.residual_bytes()));
  }
  void add_mlp() { add(joined(multiply("mlp in", mlp_in_), book_.activation_forward())); }

  const model::ModelSpec& model_;
  const plan::ParallelPlan& plan_;
  const KernelBook& book_;
  SavedMultiplies saved_;
  std::array<LinearShape, 4> linears_;
  LinearShape qkv_;
  LinearShape mlp_in_;
  const Shapes& shapes_;
  Pass pass_;
};

}  // namespace

SavedMultiplies::SavedMultiplies(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  Counter counter(!model.linear_bias);
  queries = counter.saves_next();
  keys = plan.fused_linears.qkv ? queries : counter.saves_next();
  values = plan.fused_linears.qkv ? queries : counter.saves_next();
  attention_output = counter.saves_next();
  mlp_gate = counter.saves_next();
  mlp_up = model.gated() && (plan.fused_linears.mlp ? mlp_gate : counter.saves_next());
  mlp_out = counter.saves_next();
}

bool saves_attention(const model::ModelSpec& model) {
  return model.attention != model::Attention::kStandard;
}

Pass operators_again(const model::ModelSpec& model, const plan::ParallelPlan& plan, const KernelBook& book) {
  return Repetition(model, plan, book).run();
}

}  // namespace trainsim::lowering
