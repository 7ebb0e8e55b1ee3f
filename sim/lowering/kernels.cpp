// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/kernels.hpp"

#include <utility>

#include "sim/lowering/layer_tape.hpp"

namespace trainsim::lowering {

namespace {

/// Bytes per logit of a cross-entropy in single kernels: fp32 copy (2+4), maximum (4), subtract (4+4),
/// exponential (4+4), sum (4), divide (4+4).
constexpr double kLossPasses = 38.0;
/// Bytes per logit of its backward in PyTorch's loss of shared logits: clear (4), exponential (4+4), add
/// (4+4+4), multiply (4+4) and cast to the compute precision (4+2).
constexpr double kParallelLossGradientPasses = 38.0;
/// Bytes per logit of PyTorch's log-softmax: fp32 copy (2+4), two reads and a write (3*4).
constexpr double kLogSoftmaxPasses = 18.0;
/// Of its backward: clear the gradient of the log-softmax (4), read that twice and the log-softmax once and
/// write the gradient of the copy (4*4), and cast it to the compute precision (4+2).
constexpr double kLogSoftmaxGradientPasses = 26.0;

}  // namespace

Kernels joined(Kernels first, const Kernels& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

KernelBook::KernelBook(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                       const cost::KernelModel& kernels, const RingEstimate& ring,
                       const RingEstimate& context_ring)
    : model_(model),
      plan_(plan),
      kernels_(kernels),
      ring_(ring),
      context_ring_(context_ring),
      shapes_(model, plan) {}

Seconds KernelBook::overlapped_time(program::CollectiveOp op, double bytes) const {
  if (!plan_.overlap_tensor_communication || plan_.tensor_parallel == 1) return 0;
  return ring_.time(op, plan_.tensor_parallel, bytes);
}

program::Kernel KernelBook::pass(const char* name, double elements, double bytes_per_element,
                                 int launches) const {
  return kernels_.stream(name, elements * bytes_per_element * kernels_.element_bytes() / 2.0, launches);
}

program::Kernel KernelBook::random_pass(const char* name, double elements, double bytes_per_element) const {
  return kernels_.random_stream(name, elements * bytes_per_element * kernels_.element_bytes() / 2.0);
}

double KernelBook::score_elements() const {
  return static_cast<double>(shapes_.tokens * model_.sequence_length * shapes_.heads);
}

// Bytes per element of fused norms follow from the rates in NVIDIA apex pull request 1037 on an A100-40GB,
// whose memory_efficiency makes it 0.9 of 1555 GB/s = 1400 GB/s: forward (4 bytes) 1258 GB/s persistent and
// 896 before; backward (6 bytes) 1163 and 572.
Kernels KernelBook::norm_forward() const {
  const auto n = static_cast<double>(shapes_.residual_elements);
  const bool unfused = plan_.fusion == plan::Fusion::kNone;
  if (unfused && model_.normalization == model::Normalization::kRmsNorm) {
    // Operator by operator in fp32: cast (2+4), square (4+4), mean (4), epsilon and root of a row, product
    // (4+4), cast (4+2), weight (2+2).
    return {pass("norm", n, 36.0, 8)};
  }
  return {pass("norm", n, plan_.persistent_norm || unfused ? 4.5 : 6.2)};
}

Kernels KernelBook::norm_backward() const {
  const auto n = static_cast<double>(shapes_.residual_elements);
  if (plan_.fusion == plan::Fusion::kNone) {
    // PyTorch's LayerNorm: input gradient and weight gradients each read x and dy; one writes dx; a third
    // kernel sums partial weight gradients.
    // RMSNorm's operators backwards: weight (2+2; its gradient 4+2 and 2), cast (2+4), product (4+4; the
    // root's gradient 8+4 and 4), square (three of 4+4), sum of both (8+4), cast (4+2).
    const bool rms = model_.normalization == model::Normalization::kRmsNorm;
    return {rms ? pass("norm backward", n, 84.0, 18) : pass("norm backward", n, 10.0, 3)};
  }
  return {plan_.persistent_norm ? pass("norm backward", n, 7.2, 2) : pass("norm backward", n, 14.7, 3)};
}

Kernels KernelBook::residual_forward() const {
  const auto n = static_cast<double>(shapes_.residual_elements);
  const bool dropout = model_.dropout > 0;
  if (plan_.fusion == plan::Fusion::kNone) {
    Kernels kernels;
    if (model_.linear_bias) kernels.push_back(pass("bias", n, 4.0));
    if (dropout) kernels.push_back(random_pass("dropout", n, 5.0));
    kernels.push_back(pass("residual add", n, 6.0));
    return kernels;
  }
  // A compiler also feeds the sum straight into the next norm, which then need not read it again.
  const double saved = plan_.fusion == plan::Fusion::kCompiled ? 2.0 : 0.0;
  if (dropout) return {random_pass("bias + dropout + residual", n, 7.0 - saved)};
  return {pass("bias + residual", n, 6.0 - saved)};
}

Kernels KernelBook::residual_backward() const {
  const auto n = static_cast<double>(shapes_.residual_elements);
  Kernels kernels = {pass("residual gradient add", n, 6.0)};
  if (model_.dropout > 0) kernels.push_back(pass("dropout backward", n, 5.0));
  if (model_.linear_bias) kernels.push_back(pass("bias gradient", n, 2.0));
  return kernels;
}

Kernels KernelBook::branch_add() const {
  return {pass("branch add", static_cast<double>(shapes_.residual_elements), 6.0)};
}

Kernels KernelBook::activation_forward(double elements) const {
  const double n = elements;
  const bool fused = plan_.fusion != plan::Fusion::kNone;
  if (model_.gated()) return {pass("gated activation", n, fused ? 6.0 : 10.0, fused ? 1 : 2)};
  const bool bias = model_.linear_bias && !fused;
  return {pass("activation", n, bias ? 8.0 : 4.0, bias ? 2 : 1)};
}

Kernels KernelBook::activation_backward(double elements) const {
  const double n = elements;
  const bool fused = plan_.fusion != plan::Fusion::kNone;
  if (model_.gated()) return {pass("gated activation backward", n, fused ? 10.0 : 18.0, fused ? 1 : 3)};
  Kernels kernels = {pass("activation backward", n, 6.0)};
  if (model_.linear_bias) kernels.push_back(pass("bias gradient", n, 2.0));
  return kernels;
}

Kernels KernelBook::latent_forward() const {
  const std::vector<LinearShape> linears = latent_linears(model_, plan_);
  const char* const names[] = {"query latent", "queries", "key/value latent", "keys and values"};
  Kernels kernels;
  for (std::size_t i = 0; i < linears.size(); ++i) {
    if (linears[i].out == 0) continue;
    kernels = joined(std::move(kernels), cast_input(latent_inputs(linears[i]), CastFrom::kKernel));
    kernels = joined(std::move(kernels), linear(names[i], linears[i]));
    // Latents are normalised.
    if (i % 2 == 0) kernels.push_back(pass("norm of a latent", latent_elements(linears[i]), 4.5));
  }
  kernels.push_back(pass("rotary and heads", head_elements(), 4.0, 6));
  return kernels;
}

Kernels KernelBook::latent_backward() const {
  const std::vector<LinearShape> linears = latent_linears(model_, plan_);
  const char* const names[] = {"query latent", "queries", "key/value latent", "keys and values"};
  Kernels kernels = {pass("rotary and heads", head_elements(), 4.0, 6)};
  for (const std::size_t i : {3U, 2U, 1U, 0U}) {
    if (linears[i].out == 0) continue;
    if (i % 2 == 0)
      kernels.push_back(pass("norm of a latent, backward", latent_elements(linears[i]), 7.2, 2));
    kernels = joined(std::move(kernels), cast_gradient(latent_elements(linears[i])));
    kernels = joined(std::move(kernels), input_gradient(names[i], linears[i]));
    kernels = joined(std::move(kernels), cast_input_again(latent_inputs(linears[i])));
    kernels = joined(std::move(kernels), weight_gradient(names[i], linears[i]));
  }
  // Both latents come from the same input.
  kernels.push_back(pass("residual gradient add", static_cast<double>(shapes_.tokens * shapes_.hidden), 6.0));
  return kernels;
}

Kernels KernelBook::rotary() const {
  if (model_.latent.active()) return {};
  if (model_.position_embedding != model::PositionEmbedding::kRotary) return {};
  const auto n = static_cast<double>(shapes_.tokens * (shapes_.query_width + shapes_.key_value_width));
  const bool fused = plan_.fusion != plan::Fusion::kNone;
  // Operator by operator: by cosine (2+2), half turned (1+1) and put together (2+2), by sine (2+2), sum
  // (4+2).
  return {pass("rotary", n, fused ? 4.0 : 20.0, fused ? 2 : 10)};
}

Kernels KernelBook::attention_core_forward() const {
  if (model_.attention == model::Attention::kStandard) return standard_core_forward();
  return {kernels_.attention_forward("attention", attention_shape())};
}

Kernels KernelBook::attention_core_backward() const {
  if (model_.attention == model::Attention::kStandard) return standard_core_backward();
  return {kernels_.attention_backward("attention backward", attention_shape())};
}

cost::AttentionShape KernelBook::attention_shape() const {
  const int first = model_.attention == model::Attention::kFlash1 ? 1 : 0;
  const int generation = model_.attention == model::Attention::kFlash2 ? 2 : first;
  return {plan_.micro_batch_size, shapes_.sequence,  shapes_.heads, shapes_.key_value_heads,
          shapes_.head_dim,       shapes_.value_dim, generation};
}

Kernels KernelBook::standard_core_forward() const {
  const std::int64_t s = model_.sequence_length;
  const std::int64_t batch = plan_.micro_batch_size * shapes_.heads;
  const double scores = score_elements();
  const bool fused = plan_.fusion != plan::Fusion::kNone;
  Kernels kernels = {kernels_.matmul("attention scores", {batch, s, s, shapes_.head_dim})};
  // Fused: scale, mask and softmax read and write the scores once. Else each does.
  if (model_.position_embedding == model::PositionEmbedding::kAlibi) {
    // The bias is written out for all scores, and the multiply adds to it.
    kernels.insert(kernels.begin(), pass("alibi", scores, 4.0));
  }
  kernels.push_back(pass("scale + mask + softmax", scores, fused ? 4.0 : 12.0, fused ? 1 : 3));
  if (model_.dropout > 0) kernels.push_back(random_pass("attention dropout", scores, 5.0));
  kernels.push_back(kernels_.matmul("attention values", {batch, s, shapes_.value_dim, s}));
  // Heads are put side by side again for the output projection (Megatron-LM's CoreAttention).
  kernels.push_back(
      pass("attention layout", static_cast<double>(shapes_.tokens * shapes_.output_width), 4.0));
  return kernels;
}

Kernels KernelBook::standard_core_backward() const {
  const std::int64_t s = model_.sequence_length;
  const std::int64_t batch = plan_.micro_batch_size * shapes_.heads;
  const std::int64_t d = shapes_.head_dim;
  const double scores = score_elements();
  const bool fused = plan_.fusion != plan::Fusion::kNone;
  const auto n = static_cast<double>(shapes_.tokens);
  Kernels kernels = {
      pass("attention layout backward", n * static_cast<double>(shapes_.output_width), 4.0),
      kernels_.matmul("attention values: probability gradient", {batch, s, s, shapes_.value_dim}),
      kernels_.matmul("attention values: value gradient", {batch, s, shapes_.value_dim, s})};
  if (model_.dropout > 0) kernels.push_back(pass("attention dropout backward", scores, 5.0));
  kernels.push_back(pass("softmax backward", scores, fused ? 6.0 : 14.0, fused ? 1 : 3));
  kernels.push_back(kernels_.matmul("attention scores: query gradient", {batch, s, d, s}));
  kernels.push_back(kernels_.matmul("attention scores: key gradient", {batch, s, d, s}));
  // Gradients of queries, keys and values are put into the one tensor that they were split from.
  const auto widths = static_cast<double>(shapes_.query_width + shapes_.key_value_width +
                                          shapes_.key_value_heads * shapes_.value_dim);
  kernels.push_back(pass("qkv gradient layout", n * widths, 4.0));
  return kernels;
}

Kernels KernelBook::embedding_forward() const {
  const auto n = static_cast<double>(shapes_.tokens * shapes_.hidden);
  Kernels kernels = {pass("embedding lookup", n, 4.0)};
  if (model_.position_embedding == model::PositionEmbedding::kLearned) {
    kernels.push_back(pass("position add", n, 6.0, 2));
  }
  if (model_.embedding_norm) kernels.push_back(pass("embedding norm", n, 4.0));
  if (model_.dropout > 0) {
    kernels.push_back(random_pass("embedding dropout", static_cast<double>(shapes_.residual_elements), 5.0));
  }
  return kernels;
}

Kernels KernelBook::embedding_backward() const {
  if (plan_.lora.active()) return {};
  const auto n = static_cast<double>(shapes_.tokens * shapes_.hidden);
  // Read the gradient, read and write the rows it is added to.
  const double bytes = kernels_.element_bytes() + 2.0 * static_cast<double>(plan_.gradient_bytes);
  Kernels kernels = {kernels_.stream("embedding gradient", n * bytes, 3)};
  if (model_.embedding_norm) kernels.push_back(pass("embedding norm backward", n, 10.0, 3));
  return kernels;
}

Kernels KernelBook::loss_forward() const {
  const auto n = static_cast<double>(shapes_.tokens * shapes_.vocab);
  Kernels kernels;
  if (plan_.loss == plan::Loss::kCompiled) {
    // The largest logit of a row and the sum of its exponentials, a read each, and the loss of the rows.
    kernels.push_back(kernels_.stream("softmax cross-entropy", n * 2.0 * kernels_.element_bytes(), 3));
  } else if (plan_.loss == plan::Loss::kFused) {
    // Logits are read twice, for their statistics and for the gradient that is written in their place.
    kernels.push_back(kernels_.stream("softmax cross-entropy", n * 3.0 * kernels_.element_bytes()));
  } else if (has_log_softmax(plan_)) {
    kernels.push_back(kernels_.stream("softmax cross-entropy", n * kLogSoftmaxPasses, 3));
  } else {
    kernels.push_back(kernels_.stream("softmax cross-entropy", n * kLossPasses, 6));
  }
  const int again = static_cast<int>(plan_.loss_metrics);
  if (again > 0)
    kernels.push_back(kernels_.stream("metrics of the loss", n * kLogSoftmaxPasses * again, 3 * again));
  return kernels;
}

Kernels KernelBook::loss_backward() const {
  const auto n = static_cast<double>(shapes_.tokens * shapes_.vocab);
  // The gradient is there, and is scaled; or it is made from the logits.
  if (plan_.loss != plan::Loss::kStandard)
    return {kernels_.stream("softmax cross-entropy backward", n * 2.0 * kernels_.element_bytes())};
  if (has_parallel_loss(plan_))
    return {kernels_.stream("softmax cross-entropy backward", n * kParallelLossGradientPasses, 5)};
  if (has_log_softmax(plan_))
    return {kernels_.stream("softmax cross-entropy backward", n * kLogSoftmaxGradientPasses, 4)};
  // Scale the saved softmax in place (4+4) and cast it to the compute precision (4+2).
  return {kernels_.stream("softmax cross-entropy backward", n * 14.0, 3)};
}

program::Kernel KernelBook::multiply(const char* name, const LinearShape& shape) const {
  return kernels_.matmul(name, {1, shapes_.tokens, shape.out, shape.in, shape.fp8}, {shapes_.element, false});
}

namespace {

/// What `of_module` makes of each module of a layer and its share of the communication beside it, one after
/// the other.
template <class OfModule>
Kernels for_each_module(const LinearShape& shape, Seconds communication, OfModule of_module) {
  Kernels kernels;
  for (const LinearShape& module : shape.apart()) {
    const double share = static_cast<double>(module.out) / static_cast<double>(shape.out);
    kernels = joined(std::move(kernels), of_module(module, communication * share));
  }
  return kernels;
}

}  // namespace

Kernels KernelBook::input_gradient(const char* name, const LinearShape& shape, Seconds communication) const {
  const Kernels kernels = for_each_module(
      shape, communication,
      [&](const LinearShape& module, Seconds beside) { return module_input_gradient(name, module, beside); });
  return joined(kernels, input_gradient_add(shape));
}

Kernels KernelBook::module_input_gradient(const char* name, const LinearShape& shape,
                                          Seconds communication) const {
  Kernels kernels = cast_weight(shape, true);
  kernels.push_back(kernels_.matmul_beside(std::string(name) + ": input gradient",
                                           {1, shapes_.tokens, shape.in, shape.out, shape.fp8},
                                           {shapes_.element, false}, communication));
  return joined(std::move(kernels), rescaled(shape, static_cast<double>(shapes_.tokens * shape.in)));
}

/// Automatic differentiation adds one to the other, each in a pass. A compiler reads all in the kernel that
/// takes their sum, unless that is sent to other ranks first.
Kernels KernelBook::input_gradient_add(const LinearShape& shape) const {
  const auto others = static_cast<int>(shape.modules() - 1);
  if (others == 0) return {};
  const auto n = static_cast<double>(shapes_.tokens * shape.in);
  const char* const name = "input gradient add";
  if (plan_.fusion != plan::Fusion::kCompiled) return {pass(name, n, 6.0 * others, others)};
  if (shapes_.tensor_parallel == 1) return {pass(name, n, 2.0 * others, 0)};
  return {pass(name, n, 2.0 * (others + 1) + 2.0)};
}

Kernels KernelBook::weight_gradient(const char* name, const LinearShape& shape, Seconds communication) const {
  return for_each_module(shape, communication, [&](const LinearShape& module, Seconds beside) {
    return module_weight_gradient(name, module, beside);
  });
}

Kernels KernelBook::module_weight_gradient(const char* name, const LinearShape& linear,
                                           Seconds communication) const {
  const cost::MatmulShape shape = {1, linear.out, linear.in, shapes_.tokens, linear.fp8};
  const std::string multiply = std::string(name) + ": weight gradient";
  if (plan_.gradient_accumulation_fusion) {
    return {kernels_.matmul_beside(multiply, shape, {plan_.gradient_bytes, true}, communication)};
  }
  // The product is read once more, and added to what is there.
  const double bytes = kernels_.element_bytes() + 2.0 * static_cast<double>(plan_.gradient_bytes);
  const auto elements = static_cast<double>(linear.in * linear.out);
  Kernels kernels = {kernels_.matmul_beside(multiply, shape, {shapes_.element, false}, communication)};
  kernels = joined(std::move(kernels), rescaled(linear, elements));
  kernels.push_back(kernels_.stream("gradient accumulation", elements * bytes));
  return kernels;
}

Kernels KernelBook::linear(const char* name, const LinearShape& shape) const {
  return for_each_module(shape, 0, [&](const LinearShape& part, Seconds) { return module(name, part); });
}

Kernels KernelBook::module(const char* name, const LinearShape& shape) const {
  Kernels kernels = cast_weight(shape, false);
  kernels.push_back(multiply(name, shape));
  if (!shape.adapted) return kernels;
  const std::int64_t rank = plan_.lora.rank;
  kernels.push_back(multiply("adapter in", {shape.in, rank}));
  kernels.push_back(multiply("adapter out", {rank, shape.out}));
  kernels.push_back(pass("adapter add", static_cast<double>(shapes_.tokens * shape.out), 6.0));
  return kernels;
}

Kernels KernelBook::trained_gradients(const char* name, const LinearShape& shape,
                                      Seconds communication) const {
  if (!plan_.lora.active()) return weight_gradient(name, shape, communication);
  if (!shape.adapted) return {};
  return for_each_module(shape, 0,
                         [&](const LinearShape& module, Seconds) { return adapter_gradients(module); });
}

Kernels KernelBook::adapter_gradients(const LinearShape& shape) const {
  const LinearShape in = {shape.in, plan_.lora.rank};
  const LinearShape out = {plan_.lora.rank, shape.out};
  Kernels kernels = joined(weight_gradient("adapter out", out), input_gradient("adapter out", out));
  kernels =
      joined(joined(std::move(kernels), weight_gradient("adapter in", in)), input_gradient("adapter in", in));
  kernels.push_back(pass("adapter gradient add", static_cast<double>(shapes_.tokens * shape.in), 6.0));
  return kernels;
}

}  // namespace trainsim::lowering
