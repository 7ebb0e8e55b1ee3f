// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/expert_kernels.hpp"

#include <string>
#include <utility>

namespace trainsim::lowering {

namespace {

/// Bytes per score of a router, all in fp32. Forward: softmax for the balance of load (4+4), the choice (4),
/// probabilities and a map of who visits whom (4+1), sums over tokens of both (4+1). Backward: gradients of
/// probabilities and of the softmax read (4+4), scores (4), their gradient written twice (4+4).
constexpr double kRouterPasses = 22.0;
constexpr double kRouterBackwardPasses = 20.0;
constexpr int kRouterLaunches = 8;
constexpr int kRouterBackwardLaunches = 6;

void append(Kernels& to, Kernels kernels) {
  for (program::Kernel& kernel : kernels) to.push_back(std::move(kernel));
}

}  // namespace

ExpertBook::ExpertBook(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                       const cost::KernelModel& kernels, const KernelBook& book)
    : plan_(plan),
      kernels_(kernels),
      book_(book),
      shapes_(model, plan),
      linears_(expert_linears(model, plan)) {}

Kernels ExpertBook::router_forward() const {
  const auto scores = static_cast<double>(shapes_.tokens * shapes_.experts);
  return {kernels_.matmul("router", {1, shapes_.tokens, shapes_.experts, shapes_.hidden}, {4, false}),
          kernels_.stream("routing", scores * kRouterPasses, kRouterLaunches)};
}

Kernels ExpertBook::router_backward() const {
  const auto scores = static_cast<double>(shapes_.tokens * shapes_.experts);
  return {kernels_.stream("routing backward", scores * kRouterBackwardPasses, kRouterBackwardLaunches),
          kernels_.matmul("router: input gradient", {1, shapes_.tokens, shapes_.hidden, shapes_.experts},
                          {shapes_.element, false}),
          kernels_.matmul("router: weight gradient", {1, shapes_.experts, shapes_.hidden, shapes_.tokens},
                          {plan_.gradient_bytes, true})};
}

Kernels ExpertBook::moved(const char* name) const {
  const auto elements = static_cast<double>((shapes_.tokens + shapes_.copies) * shapes_.hidden);
  return {kernels_.permutation(name, elements * kernels_.element_bytes())};
}

Kernels ExpertBook::permute() const {
  // Where each copy goes is worked out before.
  Kernels kernels = moved("tokens: permute");
  kernels.front().launches += 1;
  return kernels;
}

Kernels ExpertBook::sort() const {
  if (shapes_.local == 1) return {};
  return {kernels_.permutation("tokens: sort", 2.0 * static_cast<double>(shapes_.received_bytes()))};
}

/// FLOPs are those of an even share, so that they add up over ranks.
program::Kernel ExpertBook::grouped(std::string name, const cost::MatmulShape& shape,
                                    const cost::MatmulOutput& output, const LinearShape& linear) const {
  program::Kernel kernel = kernels_.matmul_group(std::move(name), shape, output);
  kernel.flops = 2.0 * static_cast<double>(shapes_.received) / shapes_.load *
                 static_cast<double>(linear.in * linear.out);
  return kernel;
}

Kernels ExpertBook::experts_forward() const {
  const cost::MatmulOutput output = {shapes_.element, false};
  const auto& [in, out] = linears_;
  Kernels kernels = sort();
  append(kernels, book_.cast_input(received(in.in), CastFrom::kKernel));
  kernels.push_back(grouped("experts in", {shapes_.local, rows(), in.out, in.in, in.fp8}, output, in));
  append(kernels, activation_forward());
  append(kernels, book_.cast_input(received(out.in), CastFrom::kKernel));
  kernels.push_back(grouped("experts out", {shapes_.local, rows(), out.out, out.in, out.fp8}, output, out));
  append(kernels, sort());
  return kernels;
}

Kernels ExpertBook::gradients(const std::string& name, const LinearShape& linear) const {
  const cost::MatmulOutput output = {shapes_.element, false};
  const cost::MatmulShape weight = {shapes_.local, linear.out, linear.in, rows(), linear.fp8};
  Kernels kernels = book_.cast_gradient(received(linear.out));
  kernels.push_back(grouped(name + ": input gradient",
                            {shapes_.local, rows(), linear.in, linear.out, linear.fp8}, output, linear));
  append(kernels, book_.cast_input_again(received(linear.in)));
  if (plan_.gradient_accumulation_fusion) {
    kernels.push_back(grouped(name + ": weight gradient", weight, {plan_.gradient_bytes, true}, linear));
    return kernels;
  }
  const double bytes = kernels_.element_bytes() + 2.0 * static_cast<double>(plan_.gradient_bytes);
  kernels.push_back(grouped(name + ": weight gradient", weight, output, linear));
  kernels.push_back(kernels_.stream("gradient accumulation",
                                    static_cast<double>(shapes_.local * linear.in * linear.out) * bytes));
  return kernels;
}

Kernels ExpertBook::experts_backward() const {
  Kernels kernels = sort();
  append(kernels, gradients("experts out", linears_[1]));
  append(kernels, book_.activation_backward(activation_elements()));
  append(kernels, gradients("experts in", linears_[0]));
  append(kernels, sort());
  return kernels;
}

}  // namespace trainsim::lowering
