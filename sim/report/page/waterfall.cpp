// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "sim/report/format.hpp"
#include "sim/report/page/parts.hpp"

namespace trainsim::report {

namespace {

using program::Cause;

struct Cost {
  Cause cause;
  const char* name;
  const char* text;
};

constexpr std::array<Cost, 9> kCosts = {{
    {Cause::kRecompute, "Recomputation",
     "Forward work that is done again in backward, so that its activations need not be kept."},
    {Cause::kLaunch, "Kernel launches", "The GPU has run dry and waits for the host to launch kernels."},
    {Cause::kTensorCommunication, "Tensor-parallel communication",
     "Compute waits for collectives of its tensor-parallel group."},
    {Cause::kContextCommunication, "Context-parallel communication",
     "Attention waits for what ranks with other parts of the sequence send."},
    {Cause::kPipelineCommunication, "Pipeline transfers", "Compute waits for a message that is on its way."},
    {Cause::kDataCommunication, "Gradient and parameter exchange",
     "Compute waits for gradients to be reduced or parameters to be gathered."},
    {Cause::kEmbeddingCommunication, "Embedding exchange",
     "The first and the last stage add up the gradients of the embedding that they share."},
    {Cause::kImbalance, "Imbalance",
     "Waiting for slower members of a group, or for the slowest rank to end."},
    {Cause::kBubble, "Pipeline bubble",
     "A stage has nothing to do, because another has not produced its input yet."},
}};

/// Shares of the step below this are left out unless they are needed for the sum.
constexpr double kNothing = 1e-9;

}  // namespace

std::vector<WaterfallBar> waterfall(const Summary& summary) {
  const auto of = [&summary](Cause cause) { return summary.breakdown[static_cast<std::size_t>(cause)]; };
  const auto gpus = static_cast<double>(summary.plan.gpus);
  const Seconds arithmetic = summary.model_flops / (gpus * summary.peak_flops);
  const Seconds ideal = summary.single_gpu_time / gpus;
  const Seconds computing = of(Cause::kForward) + of(Cause::kBackward) + of(Cause::kOptimizer);
  std::vector<WaterfallBar> bars = {
      {"Arithmetic at peak", true, arithmetic,
       "The model's operations at the GPU's dense peak. Its share of the step is the MFU."},
      {"Kernels below peak", false, ideal - arithmetic,
       "What kernels take beyond that on one GPU: they move memory, fill their tiles, wait for launches."},
      {"Ideal share of one GPU", true, ideal,
       "The same batch on one imaginary GPU with enough memory, divided by the GPUs. Its share of the step "
       "is the "
       "scaling efficiency."},
      {"Split kernels", false, computing - ideal,
       "Kernels of a split layer are smaller and less efficient, and ranks repeat some work (padding, norms, "
       "the "
       "optimizer)."}};
  for (const Cost& cost : kCosts) {
    if (std::abs(of(cost.cause)) > kNothing * summary.step_time)
      bars.push_back({cost.name, false, of(cost.cause), cost.text});
  }
  bars.push_back({"Step", true, summary.step_time, "The step as simulated."});
  return bars;
}

}  // namespace trainsim::report
