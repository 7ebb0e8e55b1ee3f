// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/layer_tape.hpp"

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/lowering/context_attention.hpp"
#include "sim/lowering/expert_tape.hpp"
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/latent_tape.hpp"
#include "sim/lowering/operator_checkpoint.hpp"

namespace trainsim::lowering {

namespace {

using program::MemoryCategory;

/// Writes the operations of a transformer layer in order.
class LayerTape {
 public:
  LayerTape(const model::ModelSpec& model, const plan::ParallelPlan& plan, model::LayerKind kind)
      : model_(model),
        plan_(plan),
        kind_(kind),
        shapes_(model, plan),
        linears_(layer_linears(model, plan, kind)),
        by_operators_(plan.recompute.by_operators()),
        saved_(model, plan),
        residual_(shapes_.residual_elements * shapes_.element) {}

  Tape build();

 private:
  Bytes width(std::int64_t columns) const { return shapes_.tokens * columns * shapes_.element; }
  TensorId gathered(const std::string& what) {
    const double bytes = static_cast<double>(shapes_.residual_bytes()) * gathered_share(plan_);
    return tape_.tensor("gathered " + what, shapes_.sequence_parallel ? std::llround(bytes) : 0,
                        MemoryCategory::kCommunicationBuffers);
  }
  TensorId norm(const std::string& name, TensorId input);
  /// Copies in 8 bits of the gradient of an output of so many elements.
  void add_gradient_copies(Operation& operation, const LinearShape& linear, Bytes elements);
  /// Gradients of the input that other modules of the layer make, while backward runs.
  void add_other_gradients(Operation& operation, const LinearShape& linear);
  /// A tensor that a multiply puts out.
  struct Output {
    std::string name;
    std::int64_t columns = 0;
    /// Whether a checkpoint of operators saves it.
    bool saved = false;
  };
  /// Queries, keys and values, and the inputs of the MLP: one tensor, or one of each module.
  std::vector<Output> qkv_outputs() const;
  std::vector<Output> mlp_inputs() const;
  /// `of_input` is how the operation repeats that has made the input.
  std::vector<TensorId> column_parallel(const std::string& name, TensorId input, const LinearShape& linear,
                                        Repeat repeat, const std::vector<Output>& outputs);
  /// `saved` is whether a checkpoint of operators saves what the multiply puts out.
  TensorId row_parallel(const std::string& name, TensorId input, const LinearShape& linear, Repeat repeat,
                        Repeat of_input, bool saved);
  void add_partial_sums(Operation& operation, bool saved);
  /// What a linear layer keeps: its input of so many elements, if something is trained there, in 8 bits if it
  /// is not made again anyhow; and what an adapter makes of it.
  void keep_for_gradients(Operation& operation, const LinearShape& linear, Bytes elements, Repeat of_input);
  void save_if(bool saved, TensorId tensor) {
    if (by_operators_ && saved) tape_.save(tensor);
  }
  TensorId add_residual(const std::string& name, TensorId branch, TensorId residual);
  TensorId attention(TensorId input);
  /// What the attention core reads, and the tensors that hold it.
  struct Heads {
    TensorId queries_and_keys;
    TensorId values;
    std::vector<TensorId> storage;
  };
  Heads split_into_heads(TensorId input);
  Heads heads(const std::vector<TensorId>& projected);
  TensorId core(const Heads& heads);
  /// Whether ring attention keeps one more tensor of that size, as the peaks of SimuMax's runs show of
  /// Transformer Engine; which one is not known.
  bool keeps_ring_copy() const {
    return shapes_.context_parallel > 1 && plan_.transformer_engine &&
           plan_.context_communication == plan::ContextCommunication::kP2p;
  }
  void standard_core(const Heads& heads, TensorId output, Repeat repeat);
  TensorId softmax(TensorId raw, Bytes scores, Repeat repeat);
  TensorId mlp(TensorId input);
  TensorId dense_mlp(TensorId input, Repeat repeat);
  /// Routed experts, and shared ones if there are any.
  TensorId experts(TensorId input);
  Repeat repeat_of_norm() const {
    const bool made_again =
        plan_.fusion == plan::Fusion::kCompiled || plan_.recompute.repeats(&plan::RecomputeModules::norm);
    return made_again ? Repeat::kOutput : Repeat::kNever;
  }
  Repeat repeat_of_activation(Repeat all) const {
    const bool made_again = plan_.fusion == plan::Fusion::kCompiled ||
                            plan_.recompute.repeats(&plan::RecomputeModules::activation);
    return all == Repeat::kNever && made_again ? Repeat::kOutput : all;
  }
  /// Whether a gated activation keeps its activated gate.
  bool keeps_gate() const { return model_.gated() && plan_.fusion == plan::Fusion::kNone; }

  const model::ModelSpec& model_;
  const plan::ParallelPlan& plan_;
  model::LayerKind kind_;
  Shapes shapes_;
  std::array<LinearShape, 4> linears_;
  bool by_operators_;
  SavedMultiplies saved_;
  Bytes residual_;
  Tape tape_;
};

Tape LayerTape::build() {
  if (by_operators_) {
    const bool compiled = plan_.fusion == plan::Fusion::kCompiled;
    tape_.set_checkpoint(compiled ? Checkpoint::kCompiled : Checkpoint::kSelective);
  } else if (skips_last_multiply(model_, plan_, kind_)) {
    tape_.set_checkpoint(Checkpoint::kSelective);
  }
  const TensorId input = tape_.tensor("layer input", residual_);
  tape_.set_input(input);
  const TensorId middle = add_residual("attention residual", attention(norm("attention norm", input)), input);
  tape_.set_output(add_residual("mlp residual", mlp(norm("mlp norm", middle)), middle));
  return std::move(tape_);
}

/// RMSNorm without a fused kernel works on an fp32 copy of its input and casts the result before it
/// multiplies with the weight; automatic differentiation keeps both.
TensorId LayerTape::norm(const std::string& name, TensorId input) {
  const bool rms = model_.normalization == model::Normalization::kRmsNorm;
  Operation operation{name, {input}, {}, {tape_.tensor(name + " output", residual_)}, {input}, {}, {}, {}};
  if (plan_.fusion == plan::Fusion::kNone && rms && shapes_.element < 4) {
    const Bytes elements = shapes_.residual_elements;
    for (const TensorId copy : {tape_.tensor(name + " input in fp32", 4 * elements),
                                tape_.tensor(name + " before its weight", elements * shapes_.element)}) {
      operation.writes.push_back(copy);
      operation.keeps.push_back(copy);
    }
  }
  operation.repeat = repeat_of_norm();
  const TensorId output = operation.writes.front();
  tape_.add(std::move(operation));
  return output;
}

void LayerTape::keep_for_gradients(Operation& operation, const LinearShape& linear, Bytes elements,
                                   Repeat of_input) {
  operation.has_weight = true;
  const Bytes copy = of_input == Repeat::kOutput ? 0 : kept_fp8_bytes(plan_, elements);
  if (!plan_.lora.active() || linear.adapted) keep_input(tape_, operation, copy);
  if (!linear.adapted) return;
  const Bytes bytes = linear.modules() * width(plan_.lora.rank);
  operation.writes.push_back(tape_.tensor(operation.name + " adapter input", bytes));
  operation.keeps.push_back(operation.writes.back());
}

/// For the input's gradient and for the weight's, while backward runs.
void LayerTape::add_gradient_copies(Operation& operation, const LinearShape& linear, Bytes elements) {
  if (!linear.fp8) return;
  const double bytes = 2.0 * static_cast<double>(elements) * fp8_element_bytes(plan_.fp8.recipe);
  operation.backward_buffers.push_back(
      tape_.tensor(operation.name + " output gradient in 8 bits", std::llround(bytes)));
}

/// Automatic differentiation adds up in place what modules make of their input's gradient; a compiler reads
/// all at once.
void LayerTape::add_other_gradients(Operation& operation, const LinearShape& linear) {
  if (linear.modules() == 1) return;
  const Bytes others = plan_.fusion == plan::Fusion::kCompiled ? linear.modules() - 1 : 1;
  operation.backward_buffers.push_back(
      tape_.tensor(operation.name + " input gradient of another module", others * shapes_.residual_bytes()));
}

/// With sequence parallelism the input is gathered for the multiply, and again in backward, where the input's
/// gradient is whole, too, before it is scattered. A checkpoint of operators gathers it once for both.
std::vector<TensorId> LayerTape::column_parallel(const std::string& name, TensorId input,
                                                 const LinearShape& linear, Repeat repeat,
                                                 const std::vector<Output>& outputs) {
  std::vector<TensorId> tensors;
  for (const Output& output : outputs) {
    tensors.push_back(tape_.tensor(output.name, width(output.columns)));
    save_if(output.saved, tensors.back());
  }
  const TensorId whole = tape_.tensor(name + " input gradient of all ranks",
                                      shapes_.sequence_parallel ? shapes_.residual_bytes() : 0);
  const TensorId all_of_input = gathered(name + " input");
  Operation operation{name, {input}, {}, tensors, {}, {}, {whole}, repeat};
  add_other_gradients(operation, linear);
  add_gradient_copies(operation, linear, shapes_.tokens * linear.out);
  if (by_operators_ && shapes_.sequence_parallel) {
    operation.has_weight = true;
    operation.writes.push_back(all_of_input);
    operation.keeps.push_back(all_of_input);
  } else {
    operation.forward_buffers.push_back(all_of_input);
    // For the gradient of a weight; adapters need it as well.
    if (!plan_.lora.active() || linear.adapted)
      operation.weight_buffers.push_back(gathered(name + " input again"));
    keep_for_gradients(operation, linear, shapes_.residual_elements, repeat_of_norm());
  }
  tape_.add(std::move(operation));
  return tensors;
}

/// With sequence parallelism the partial sums are whole before they are scattered. A checkpoint of operators
/// saves what is scattered, and the sums, if it saves the multiply's output; eager PyTorch makes sums again
/// that it has not saved, though it needs only what is scattered.
void LayerTape::add_partial_sums(Operation& operation, bool saved) {
  if (!shapes_.sequence_parallel) return save_if(saved, operation.writes.front());
  const TensorId partial = tape_.tensor(operation.name + " partial sums", shapes_.residual_bytes());
  save_if(true, operation.writes.front());
  save_if(saved, partial);
  const bool made_again = by_operators_ && plan_.fusion != plan::Fusion::kCompiled;
  std::vector<TensorId>& place = made_again ? operation.writes : operation.forward_buffers;
  place.push_back(partial);
}

TensorId LayerTape::row_parallel(const std::string& name, TensorId input, const LinearShape& linear,
                                 Repeat repeat, Repeat of_input, bool saved) {
  const TensorId output = tape_.tensor(name + " output", residual_);
  Operation operation{name, {input}, {}, {output}, {}, {}, {}, repeat};
  add_partial_sums(operation, saved);
  operation.gathered_gradient = {gathered(name + " output gradient")};
  add_gradient_copies(operation, linear, shapes_.residual_elements);
  keep_for_gradients(operation, linear, shapes_.tokens * linear.in, of_input);
  tape_.add(std::move(operation));
  return output;
}

TensorId LayerTape::add_residual(const std::string& name, TensorId branch, TensorId residual) {
  const TensorId output = tape_.tensor(name + " output", residual_);
  if (model_.dropout > 0) {
    const TensorId mask = tape_.tensor(name + " dropout mask", shapes_.residual_elements);
    tape_.add({name, {branch}, {residual}, {output, mask}, {mask}, {}, {}, {}});
  } else {
    tape_.add({name, {}, {branch, residual}, {output}, {}, {}, {}, {}});
  }
  return output;
}

/// Queries, keys and values as the core takes them: views of the projection, or tensors of their own where
/// they are rotated, or where keys and values have fewer heads; repeated for every query head if the
/// framework does so. Their gradients are put together again for the projection's.
LayerTape::Heads LayerTape::heads(const std::vector<TensorId>& projected) {
  const bool grouped = shapes_.key_value_heads != shapes_.heads;
  const bool copied = model_.position_embedding == model::PositionEmbedding::kRotary || grouped;
  const Bytes keys = width(shapes_.taken_key_width);
  const Bytes queries_and_keys = width(shapes_.query_width) + keys;
  Heads heads{};
  heads.queries_and_keys = copied ? tape_.tensor("queries and keys", queries_and_keys)
                                  : tape_.view("queries and keys", queries_and_keys);
  heads.values = copied ? tape_.tensor("values", keys) : tape_.view("values", keys);
  heads.storage = copied ? std::vector{heads.queries_and_keys, heads.values} : projected;
  tape_.add({"split into heads", projected, {}, {heads.queries_and_keys, heads.values}, {}, {}, {}, {}});
  return heads;
}

TensorId LayerTape::attention(TensorId input) {
  return row_parallel("attention projection", core(split_into_heads(input)), linears_[1], Repeat::kNever,
                      Repeat::kNever, saved_.attention_output);
}

std::vector<LayerTape::Output> LayerTape::qkv_outputs() const {
  const LinearShape& qkv = linears_[0];
  if (qkv.modules() == 1) return {{"qkv output", qkv.out, saved_.queries}};
  return {{"query projection output", qkv.columns[0], saved_.queries},
          {"key projection output", qkv.columns[1], saved_.keys},
          {"value projection output", qkv.columns[2], saved_.values}};
}

std::vector<LayerTape::Output> LayerTape::mlp_inputs() const {
  const LinearShape& in = linears_[2];
  if (in.modules() == 1) return {{"mlp in output", in.out, saved_.mlp_gate}};
  return {{"mlp gate output", in.columns[0], saved_.mlp_gate},
          {"mlp up output", in.columns[1], saved_.mlp_up}};
}

LayerTape::Heads LayerTape::split_into_heads(TensorId input) {
  if (!model_.latent.active())
    return heads(column_parallel("qkv", input, linears_[0], Repeat::kNever, qkv_outputs()));
  const LatentHeads latent = add_latent_heads(tape_, input, model_, plan_);
  return {latent.queries_and_keys, latent.values, {latent.queries_and_keys, latent.values}};
}

TensorId LayerTape::core(const Heads& heads) {
  const bool again = plan_.recompute.repeats(&plan::RecomputeModules::core_attention);
  const Repeat repeat = again ? Repeat::kChain : Repeat::kNever;
  const TensorId output = tape_.tensor("attention output", width(shapes_.output_width));
  if (model_.attention == model::Attention::kStandard) {
    standard_core(heads, output, repeat);
    return output;
  }
  // One fp32 number per row for backward, which sums the gradient of queries in fp32.
  const Bytes rows = 4 * shapes_.tokens * shapes_.heads;
  const TensorId sums = tape_.tensor("attention log-sum-exp", rows);
  save_if(true, output);
  save_if(true, sums);
  const TensorId work =
      tape_.tensor("query gradient in fp32", 4 * shapes_.tokens * shapes_.query_width + rows);
  std::vector<TensorId> keeps = heads.storage;
  keeps.insert(keeps.end(), {output, sums});
  std::vector<TensorId> forward_buffers;
  std::vector<TensorId> backward_buffers = {work};
  add_context_buffers(tape_, shapes_, plan_.context_communication, forward_buffers, backward_buffers);
  std::vector<TensorId> writes = {output, sums};
  if (keeps_ring_copy()) {
    writes.push_back(tape_.tensor("attention output or queries once more", shapes_.query_bytes()));
    keeps.push_back(writes.back());
  }
  tape_.add({"attention core",
             {heads.queries_and_keys, heads.values},
             {},
             writes,
             keeps,
             forward_buffers,
             backward_buffers,
             repeat});
  return output;
}

/// 5 a s^2 b bytes with dropout: softmax output, mask and dropped-out probabilities (Korthikanti et al. 2022,
/// section 4.1).
void LayerTape::standard_core(const Heads& heads, TensorId output, Repeat repeat) {
  const Bytes scores = shapes_.tokens * shapes_.heads * model_.sequence_length;
  const TensorId raw = tape_.tensor("attention scores", scores * shapes_.element);
  tape_.add({"attention scores", {heads.queries_and_keys}, {}, {raw}, heads.storage, {}, {}, repeat});
  TensorId weights = softmax(raw, scores, repeat);
  if (model_.dropout > 0) {
    const TensorId dropped = tape_.tensor("attention probabilities", scores * shapes_.element);
    const TensorId mask = tape_.tensor("attention dropout mask", scores);
    tape_.add({"attention dropout", {weights}, {}, {dropped, mask}, {mask}, {}, {}, repeat});
    weights = dropped;
  }
  std::vector<TensorId> keeps = heads.storage;
  keeps.push_back(weights);
  tape_.add({"attention values", {weights, heads.values}, {}, {output}, keeps, {}, {}, repeat});
}

/// One kernel scales, masks and normalises, and keeps its output. Without it the scores are brought to fp32,
/// masked and normalised one after the other, and cast back (Megatron-LM's forward_torch_softmax).
TensorId LayerTape::softmax(TensorId raw, Bytes scores, Repeat repeat) {
  const TensorId weights = tape_.tensor("attention softmax", scores * shapes_.element);
  if (plan_.fusion != plan::Fusion::kNone || shapes_.element == 4) {
    tape_.add({"attention softmax", {raw}, {}, {weights}, {weights}, {}, {}, repeat});
    return weights;
  }
  const TensorId wide = tape_.tensor("attention scores in fp32", 4 * scores);
  const TensorId masked = tape_.tensor("masked attention scores", 4 * scores);
  const TensorId normal = tape_.tensor("attention softmax in fp32", 4 * scores);
  tape_.add({"attention scores to fp32", {raw}, {}, {wide}, {}, {}, {}, repeat});
  tape_.add({"attention mask", {wide}, {}, {masked}, {}, {}, {}, repeat});
  tape_.add({"attention softmax", {masked}, {}, {normal}, {normal}, {}, {}, repeat});
  tape_.add({"attention softmax cast back", {normal}, {}, {weights}, {}, {}, {}, repeat});
  return weights;
}

TensorId LayerTape::mlp(TensorId input) {
  if (kind_ == model::LayerKind::kExpert) return experts(input);
  const bool all_again = plan_.recompute.repeats(&plan::RecomputeModules::mlp);
  return dense_mlp(input, all_again ? Repeat::kChain : Repeat::kNever);
}

TensorId LayerTape::experts(TensorId input) {
  const bool all_again = plan_.recompute.repeats(&plan::RecomputeModules::experts);
  const Repeat repeat = all_again ? Repeat::kChain : Repeat::kNever;
  const bool has_shared = linears_[3].in > 0;
  const TensorId shared = has_shared ? dense_mlp(input, repeat) : kNoTensor;
  const TensorId routed = add_routed_experts(tape_, input, ExpertShapes(model_, plan_), residual_,
                                             {repeat, repeat_of_activation(repeat)}, keeps_gate(), plan_);
  if (!has_shared) return routed;
  const TensorId sum = tape_.tensor("sum of shared and routed experts", residual_);
  tape_.add({"add shared experts", {}, {routed, shared}, {sum}, {}, {}, {}, {}});
  return sum;
}

/// A gated activation without fusion keeps the activated gate beside its two inputs and their product.
TensorId LayerTape::dense_mlp(TensorId input, Repeat repeat) {
  const std::vector<TensorId> inner = column_parallel("mlp in", input, linears_[2], repeat, mlp_inputs());
  const TensorId activated = tape_.tensor("activation output", width(linears_[3].in));
  Operation activation{"activation", inner, {}, {activated}, inner, {}, {}, repeat_of_activation(repeat)};
  if (keeps_gate()) {
    activation.writes.push_back(tape_.tensor("activated gate", width(linears_[3].in)));
    activation.keeps.push_back(activation.writes.back());
  }
  tape_.add(std::move(activation));
  return row_parallel("mlp out", activated, linears_[3], repeat, repeat_of_activation(repeat),
                      saved_.mlp_out);
}

}  // namespace

Tape layer_tape(const model::ModelSpec& model, const plan::ParallelPlan& plan, model::LayerKind kind) {
  return LayerTape(model, plan, kind).build();
}

/// The embedding's gradient is as large as the table, and is added to the gradients once it is complete; with
/// units of their own it is part of the root's.
Tape embedding_tape(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  const Shapes shapes(model, plan);
  Tape tape;
  const TensorId output = tape.tensor("embedding output", shapes.residual_elements * shapes.element);
  const bool none = plan.works_by_units() || plan.lora.active();
  const TensorId table = tape.tensor("gradient of the embedding table",
                                     none ? 0 : shapes.vocab * shapes.hidden * shapes.element);
  Operation lookup{"embedding", {}, {}, {output}, {}, {}, {table}, {}};
  if (model.dropout > 0) {
    lookup.writes.push_back(tape.tensor("embedding dropout mask", shapes.residual_elements));
    lookup.keeps.push_back(lookup.writes.back());
  }
  tape.add(std::move(lookup));
  tape.set_output(output);
  return tape;
}

namespace {

/// Megatron-LM turns an fp32 copy of the logits into their softmax in place, keeps it, and makes the gradient
/// in the same place; a cast brings it back to compute precision.
void add_loss_in_place(Tape& tape, TensorId logits, Bytes elements) {
  const TensorId softmax =
      tape.kept_as("softmax of the logits in fp32", 4 * elements, MemoryCategory::kLogits);
  tape.add({"cross-entropy", {logits}, {}, {softmax}, {softmax}, {}, {}, {}});
}

/// PyTorch's cross-entropy: an fp32 copy, its log-softmax, which is kept; backward makes an fp32 gradient of
/// the log-softmax and one of the copy. Of shared logits the difference to the maximum is a tensor, which
/// lies beside its exponential and then beside the log-softmax; and backward adds the exponential, a tensor
/// too.
void add_loss_of_pytorch(Tape& tape, TensorId logits, Bytes elements, bool shared) {
  const TensorId copy = tape.tensor("logits in fp32", 4 * elements, MemoryCategory::kLogits);
  const TensorId softmax = tape.kept_as("log-softmax of the logits", 4 * elements, MemoryCategory::kLogits);
  tape.add({"logits to fp32", {logits}, {}, {copy}, {}, {}, {}, {}});
  Operation operation{"log-softmax", {copy}, {}, {softmax}, {softmax}, {}, {}, {}};
  if (shared) {
    operation.forward_buffers.push_back(
        tape.tensor("logits less their maximum", 4 * elements, MemoryCategory::kLogits));
    operation.backward_buffers.push_back(tape.tensor("softmax of the logits in fp32", 4 * elements));
  }
  tape.add(std::move(operation));
  const TensorId loss = tape.tensor("loss", 0);
  // The training loop holds on to the logits until it has the loss.
  tape.add({"loss", {softmax}, {}, {loss}, {}, {}, {}, {}, {logits}});
}

}  // namespace

bool has_parallel_loss(const plan::ParallelPlan& plan) {
  return plan.framework == plan::Framework::kFsdp && plan.tensor_parallel > 1 &&
         plan.loss == plan::Loss::kStandard;
}

bool has_log_softmax(const plan::ParallelPlan& plan) {
  return plan.framework != plan::Framework::kMegatron && plan.tensor_parallel == 1 &&
         plan.loss == plan::Loss::kStandard;
}

Tape head_tape(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  const Shapes shapes(model, plan);
  const Bytes residual = shapes.residual_elements * shapes.element;
  const Bytes elements = shapes.tokens * shapes.vocab;
  const Bytes whole = shapes.sequence_parallel ? shapes.residual_bytes() : 0;
  const bool fused = plan.loss == plan::Loss::kFused;
  // Megatron-LM hands automatic differentiation a stand-in for the gradient that it accumulates elsewhere.
  const bool trained = !plan.lora.active();
  const bool stand_in = trained && plan.transformer_engine && plan.gradient_accumulation_fusion;
  Tape tape;
  const TensorId input = tape.tensor("final norm input", residual);
  const TensorId normed = tape.tensor("final norm output", residual);
  const TensorId logits = fused ? tape.overwritten_by_gradient("logits", shapes.element * elements)
                                : tape.tensor("logits", shapes.element * elements, MemoryCategory::kLogits);
  const TensorId gathered =
      tape.tensor("gathered final norm output", whole, MemoryCategory::kCommunicationBuffers);
  const TensorId again =
      tape.tensor("gathered final norm output again", whole, MemoryCategory::kCommunicationBuffers);
  const TensorId partial = tape.tensor("final norm output gradient of all ranks", whole);
  const TensorId held = tape.tensor("stand-in for the output projection's gradient",
                                    stand_in ? shapes.vocab * shapes.hidden * shapes.element : 0);
  tape.set_input(input);
  tape.add({"final norm", {input}, {}, {normed}, {input}, {}, {}, {}});
  Operation projection{"output projection", {normed}, {}, {logits}, {}, {gathered}, {partial}, {}};
  projection.has_weight = true;
  projection.weight_buffers.push_back(held);
  if (trained) {
    projection.keeps.push_back(normed);
    projection.weight_buffers.push_back(again);
  }
  // Its backward reads the gradient that is in the place of the logits.
  if (fused) projection.keeps.push_back(logits);
  tape.add(std::move(projection));
  if (fused) return tape;
  if (plan.loss == plan::Loss::kCompiled) {
    tape.add({"cross-entropy", {logits}, {}, {tape.tensor("loss", 0)}, {logits}, {}, {}, {}});
    return tape;
  }
  if (plan.framework == plan::Framework::kMegatron) {
    add_loss_in_place(tape, logits, elements);
  } else {
    add_loss_of_pytorch(tape, logits, elements, has_parallel_loss(plan));
  }
  return tape;
}

}  // namespace trainsim::lowering
