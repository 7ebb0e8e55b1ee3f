// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/lower.hpp"

#include <algorithm>
#include <utility>

#include "sim/lowering/ends.hpp"
#include "sim/lowering/experts.hpp"
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "sim/lowering/stage.hpp"
#include "sim/program/timeline.hpp"

namespace trainsim::lowering {

namespace {

using program::Cause;

Pass profiled(const char* name, const Pass& replaced, Cause cause, Seconds seconds) {
  return measured_pass(name, replaced, cause, program::KernelKind::kProfiled, seconds);
}

Seconds kernel_seconds(const Pass& pass) {
  Seconds sum = 0;
  for (const Step& step : pass) {
    for (const program::Kernel& kernel : step.kernels) sum += kernel.seconds;
  }
  return sum;
}

/// The optimizer of an undivided model: as modelled, or as many times that as the stages' measured optimizers
/// are of their modelled ones.
Pass undivided_optimizer(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                         const cost::KernelModel& kernels, const Pass& modelled) {
  Seconds measured = 0;
  Seconds expected = 0;
  for (std::int64_t stage = 0; stage < plan.pipeline_parallel; ++stage) {
    const Seconds part = plan.profile.empty() ? 0 : plan.profile_of(stage).optimizer;
    if (part == 0 || plan.offload.optimizer != plan::OffloadTarget::kNone) return modelled;
    measured += part;
    expected += kernel_seconds(stage_optimizer(model, plan, kernels, stage));
  }
  return measured_pass("optimizer", modelled, Cause::kOptimizer, program::KernelKind::kOptimizer,
                       kernel_seconds(modelled) * measured / expected);
}

/// Replaces all modelled times of a stage by measured ones, spread over its layers. Times of a stage like any
/// other are those of as many layers as a stage has on average.
void apply_profile(std::int64_t stage, StageContext& context) {
  const plan::ParallelPlan& plan = context.plan;
  const plan::StageProfile& profile = plan.profile_of(stage);
  const double layers =
      plan.profile.size() == 1
          ? static_cast<double>(context.model.num_layers) / static_cast<double>(plan.pipeline_parallel)
          : static_cast<double>(plan::layers_of_stage(plan, context.model, stage));
  const auto replace = [&](LayerPasses& layer) {
    layer.forward = profiled("forward", layer.forward, Cause::kForward, profile.forward / layers);
    const Seconds later = plan.splits_backward() ? profile.weight : 0;
    layer.backward =
        profiled("backward", layer.backward, Cause::kBackward, (profile.backward - later) / layers);
    layer.weights = profiled("weight gradients", layer.weights, Cause::kBackward, later / layers);
    // The measured backward holds the time of recomputation, but its operations depend on what is recomputed.
    layer.recompute = profiled("recomputation", layer.recompute, Cause::kRecompute, 0);
  };
  for (LayerPasses& layer : context.layer.passes) replace(layer);
  if (context.whole_layer) {
    for (LayerPasses& layer : context.whole_layer->passes) replace(layer);
  }
  context.ends.embedding_forward.clear();
  context.ends.embedding_backward.clear();
  context.ends.head_forward.clear();
  context.ends.head_backward.clear();
  context.ends.head_weights.clear();
}

/// One GPU with its host, on which passes run one after the other.
class SingleGpu {
 public:
  explicit SingleGpu(const cost::KernelModel& kernels) : kernels_(kernels) {}

  /// The pass's compute as segments; a single GPU communicates with nobody.
  std::vector<program::Segment> segments(const Pass& pass) const {
    std::vector<program::Segment> result;
    for (const Step& step : pass) {
      if (step.kind == StepKind::kCompute) result.push_back(kernels_.segment(step.name, step.kernels));
    }
    return result;
  }
  void run(const std::vector<program::Segment>& segments) {
    for (const program::Segment& segment : segments) {
      now_ = host_.run(now_, segment.seconds, segment);
    }
  }
  Seconds now() const { return now_; }

 private:
  const cost::KernelModel& kernels_;
  program::Host host_;
  Seconds now_ = 0;
};

}  // namespace

FlopsPerSecond peak_flops(const hardware::GpuSpec& gpu, const plan::ParallelPlan& plan) {
  switch (plan.precision) {
    case plan::Precision::kFp32:
      return gpu.peak_fp32;
    case plan::Precision::kTf32:
      return gpu.peak_tf32;
    case plan::Precision::kFp16:
      return gpu.peak_fp16;
    case plan::Precision::kBf16:
      return gpu.peak_bf16;
    case plan::Precision::kFp8:
      return gpu.peak_fp8;
  }
  return 0;
}

cost::KernelModel kernel_model(const hardware::GpuSpec& gpu, const plan::ParallelPlan& plan) {
  Seconds launch = gpu.launch_interval_eager;
  if (plan.launch == plan::Launch::kCompiled) launch = gpu.launch_interval_compiled;
  if (plan.launch == plan::Launch::kCudaGraph) launch = gpu.launch_interval_graph;
  const bool blocking = plan.launch == plan::Launch::kBlocking;
  // With fp8 all but the linear layers are in bf16.
  const FlopsPerSecond peak = plan.uses_fp8() ? gpu.peak_bf16 : peak_flops(gpu, plan);
  return {gpu, peak, plan.element_bytes(), launch, blocking, plan.op_speedups};
}

std::vector<model::LayerKind> stage_layer_kinds(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                                std::int64_t stage) {
  std::vector<model::LayerKind> kinds;
  std::int64_t layer = 0;
  std::int64_t place = 0;
  for (const std::int64_t held : plan::stage_layers(plan, model)) {
    const bool here = place++ % plan.pipeline_parallel == stage;
    for (const std::int64_t end = layer + held; layer < end; ++layer) {
      if (here) kinds.push_back(model.kind_of(layer));
    }
  }
  return kinds;
}

namespace {

/// Layers of a stage of one kind.
std::int64_t layers_of_stage(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                             std::int64_t stage, model::LayerKind kind) {
  const std::vector<model::LayerKind> kinds = stage_layer_kinds(model, plan, stage);
  return std::count(kinds.begin(), kinds.end(), kind);
}

/// A number of each of a stage's layers, by its kind, added up.
template <class Amount>
std::int64_t sum_of_layers(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage,
                           const Amount& amount) {
  std::int64_t sum = 0;
  for (const model::LayerKind kind : {model::LayerKind::kDense, model::LayerKind::kExpert})
    sum += layers_of_stage(model, plan, stage, kind) * amount(model, plan, kind);
  return sum;
}

}  // namespace

std::int64_t stage_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                              std::int64_t stage) {
  std::int64_t parameters = sum_of_layers(model, plan, stage, layer_parameters_per_rank);
  if (stage == 0) parameters += embedding_parameters_per_rank(model, plan);
  if (stage == plan.pipeline_parallel - 1) {
    parameters += head_parameters_per_rank(model, plan, plan.pipeline_parallel > 1);
  }
  return parameters;
}

std::int64_t stage_expert_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                     std::int64_t stage) {
  return layers_of_stage(model, plan, stage, model::LayerKind::kExpert) *
         expert_parameters_per_rank(model, plan);
}

std::int64_t trained_stage_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                      std::int64_t stage) {
  if (!plan.lora.active()) return stage_parameters(model, plan, stage);
  return sum_of_layers(model, plan, stage, trained_layer_parameters_per_rank);
}

/// Ring of a group of `size` with `inside` members per node, each of which has its share of the NICs.
RingEstimate ring_estimate(const hardware::ClusterSpec& cluster, std::int64_t size, std::int64_t inside) {
  RingEstimate ring{cluster.bandwidth_within(std::min(size, inside)), cluster.collective_latency,
                    cluster.intra_node.latency};
  if (size <= inside) return ring;
  const double nics =
      static_cast<double>(inside * cluster.nics_per_node) / static_cast<double>(cluster.gpus_per_node);
  ring.rate = std::min(ring.rate, nics * cluster.nic.effective_bandwidth());
  return ring;
}

RingEstimate tensor_ring(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan) {
  return ring_estimate(cluster, plan.tensor_parallel,
                       plan::tensor_ranks_in_node(plan, cluster.gpus_per_node));
}

RingEstimate data_ring(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan) {
  const std::int64_t size = plan.is_hybrid() ? plan.shard_ranks() : plan.data_context_ranks();
  return ring_estimate(cluster, size, std::min(size, plan::data_ranks_in_node(plan, cluster.gpus_per_node)));
}

/// Ring of the ranks with the same experts, whose neighbours lie as far apart as experts are spread.
RingEstimate expert_data_ring(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan) {
  const std::int64_t apart = plan.expert_tensor() * plan.expert_parallel;
  return ring_estimate(cluster, plan.expert_shard_ranks(),
                       std::max<std::int64_t>(1, cluster.gpus_per_node / apart));
}

RingEstimate context_ring(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan) {
  const std::int64_t inside = plan::context_ranks_in_node(plan, cluster.gpus_per_node);
  const bool in_a_node = plan.context_parallel <= inside;
  // A single ring passes from node to node through one NIC.
  RingEstimate ring = ring_estimate(cluster, plan.context_parallel, in_a_node ? inside : 1);
  ring.start = cluster.point_to_point_latency;
  return ring;
}

namespace {

LayerKinds layer_kinds(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                       const hardware::ClusterSpec& cluster, const cost::KernelModel& kernels) {
  LayerKinds kinds;
  const auto add = [&](model::LayerKind kind) {
    kinds.passes.push_back(
        layer_passes(model, plan, kernels, tensor_ring(cluster, plan), context_ring(cluster, plan), kind));
    kinds.memory.emplace_back(layer_tape(model, plan, kind), plan.splits_backward());
  };
  add(model::LayerKind::kDense);
  if (model.experts.active()) add(model::LayerKind::kExpert);
  return kinds;
}

/// Layers of micro-batches that leave selective recomputation out, if there are such.
std::optional<LayerKinds> whole_layer_kinds(const model::ModelSpec& model, plan::ParallelPlan plan,
                                            const hardware::ClusterSpec& cluster,
                                            const cost::KernelModel& kernels) {
  const plan::Recompute recompute = std::exchange(plan.recompute, {});
  const bool selective = recompute.granularity == plan::RecomputeGranularity::kSelective;
  if (!selective || recompute.partial_micro_batches == 0) return std::nullopt;
  return layer_kinds(model, plan, cluster, kernels);
}

}  // namespace

std::vector<program::Program> lower(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                    const hardware::ClusterSpec& cluster,
                                    const schedule::Schedule& schedule) {
  const cost::KernelModel kernels = kernel_model(cluster.gpu, plan);
  const RingEstimate ring = tensor_ring(cluster, plan);
  StageContext context{model,
                       plan,
                       schedule,
                       kernels,
                       Shapes(model, plan),
                       layer_kinds(model, plan, cluster, kernels),
                       whole_layer_kinds(model, plan, cluster, kernels),
                       build_ends(model, plan, kernels, ring),
                       TapeTraces(embedding_tape(model, plan)),
                       TapeTraces(head_tape(model, plan), plan.splits_backward()),
                       plan::stage_layers(plan, model),
                       {data_ring(cluster, plan), expert_data_ring(cluster, plan)},
                       host_share(cluster, plan)};
  std::vector<program::Program> programs(static_cast<std::size_t>(plan.pipeline_parallel));
  for (std::int64_t stage = 0; stage < plan.pipeline_parallel; ++stage) {
    if (!plan.profile.empty()) apply_profile(stage, context);
    StageLowering(context, stage, programs[static_cast<std::size_t>(stage)]).lower();
  }
  return programs;
}

Seconds single_gpu_time(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                        const hardware::GpuSpec& gpu) {
  plan::ParallelPlan single = plan::undivided(plan);
  single.recompute = {};
  // One GPU has no bubble to put weight gradients into.
  single.schedule = plan::ScheduleKind::kOneFOneB;
  single.sharding = plan::Sharding::kNone;
  single.offload = {};
  single.offloaded_layers = 0;
  const cost::KernelModel kernels = kernel_model(gpu, single);
  const auto parameters = static_cast<double>(trained_stage_parameters(model, single, 0));
  const auto fp8_copies = static_cast<double>(fp8_copied_parameters(model, single, 0));
  SingleGpu one(kernels);
  const Pass modelled = optimizer_pass(single, kernels, parameters, parameters, fp8_copies);
  const auto optimizer = one.segments(undivided_optimizer(model, plan, kernels, modelled));
  if (!plan.profile.empty()) {
    one.run(optimizer);
    Seconds micro_batch = 0;
    for (std::int64_t stage = 0; stage < plan.pipeline_parallel; ++stage)
      micro_batch += plan.profile_of(stage).forward + plan.profile_of(stage).backward;
    return static_cast<double>(single.micro_batches() * plan.tensor_parallel * plan.context_parallel) *
               micro_batch +
           one.now();
  }
  const Ends ends = build_ends(model, single, kernels, {});
  std::vector<std::vector<program::Segment>> forward;
  std::vector<std::vector<program::Segment>> backward;
  for (const model::LayerKind kind : {model::LayerKind::kDense, model::LayerKind::kExpert}) {
    const LayerPasses layer = layer_passes(model, single, kernels, {}, {}, kind);
    forward.push_back(one.segments(layer.forward));
    backward.push_back(one.segments(layer.backward));
  }
  const auto begin = one.segments(ends.embedding_forward);
  auto turn = one.segments(ends.head_forward);
  for (program::Segment& segment : one.segments(ends.head_backward)) turn.push_back(std::move(segment));
  const auto end = one.segments(ends.embedding_backward);
  const auto of_layer = [&model](const auto& passes, std::int64_t layer) -> const auto& {
    return passes[static_cast<std::size_t>(model.kind_of(layer))];
  };
  for (std::int64_t micro_batch = 0; micro_batch < single.micro_batches(); ++micro_batch) {
    one.run(begin);
    for (std::int64_t i = 0; i < model.num_layers; ++i) one.run(of_layer(forward, i));
    one.run(turn);
    for (std::int64_t i = model.num_layers; i > 0; --i) one.run(of_layer(backward, i - 1));
    one.run(end);
  }
  one.run(optimizer);
  return one.now();
}

}  // namespace trainsim::lowering
