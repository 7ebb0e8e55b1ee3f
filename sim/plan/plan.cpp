// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace trainsim::plan {

namespace {

std::int64_t degree(const ParallelPlan& plan, Axis axis) {
  const std::array<std::int64_t, 3> degrees = {plan.tensor_parallel, plan.data_parallel,
                                               plan.pipeline_parallel};
  return degrees[static_cast<std::size_t>(axis)];
}

/// The coordinate of one axis, constant as the position is.
template <class Position>
auto& coordinate(Position& at, Axis axis) {
  if (axis == Axis::kTensor) return at.tensor;
  return axis == Axis::kData ? at.data : at.stage;
}

}  // namespace

std::vector<std::int64_t> stage_layers(const ParallelPlan& plan, const model::ModelSpec& model) {
  if (!plan.pipeline_layout.empty()) return plan.pipeline_layout;
  const auto stages = static_cast<std::size_t>(plan.virtual_stages());
  const auto count = plan.virtual_stages();
  std::vector<std::int64_t> layers(stages, model.num_layers / count);
  // Stages by their distance from the middle (twice it, to stay integral); the earlier of two comes first.
  std::vector<std::size_t> order(stages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto distance = [&](std::size_t stage) {
    return std::abs(2 * static_cast<std::int64_t>(stage) - (count - 1));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
  const auto remainder = static_cast<std::size_t>(model.num_layers % count);
  for (std::size_t i = 0; i < remainder; ++i) ++layers[order[i]];
  return layers;
}

std::int64_t layers_of_stage(const ParallelPlan& plan, const model::ModelSpec& model, std::int64_t stage) {
  const std::vector<std::int64_t> layers = stage_layers(plan, model);
  std::int64_t held = 0;
  for (std::int64_t chunk = 0; chunk < plan.virtual_pipeline; ++chunk)
    held += layers[static_cast<std::size_t>(chunk * plan.pipeline_parallel + stage)];
  return held;
}

std::int64_t rank_of(const ParallelPlan& plan, const Coordinates& at) {
  std::int64_t rank = 0;
  for (auto axis = plan.order.rbegin(); axis != plan.order.rend(); ++axis) {
    if (*axis == Axis::kTensor) rank = rank * plan.context_parallel + at.context;
    rank = rank * degree(plan, *axis) + coordinate(at, *axis);
  }
  return rank;
}

Coordinates coordinates_of(const ParallelPlan& plan, std::int64_t rank) {
  Coordinates at;
  for (const Axis axis : plan.order) {
    coordinate(at, axis) = rank % degree(plan, axis);
    rank /= degree(plan, axis);
    if (axis != Axis::kTensor) continue;
    at.context = rank % plan.context_parallel;
    rank /= plan.context_parallel;
  }
  return at;
}

ParallelPlan undivided(ParallelPlan plan) {
  plan.gpus = plan.tensor_parallel = plan.context_parallel = plan.pipeline_parallel = plan.virtual_pipeline =
      plan.data_parallel = plan.expert_parallel = 1;
  plan.expert_tensor_parallel = 0;
  plan.sequence_parallel = false;
  plan.pipeline_layout.clear();
  return plan;
}

ExpertCoordinates expert_coordinates_of(const ParallelPlan& plan, const Coordinates& at) {
  const std::int64_t place =
      at.tensor + plan.tensor_parallel * (at.context + plan.context_parallel * at.data);
  const std::int64_t tensor = plan.expert_tensor();
  return {place % tensor, place / tensor % plan.expert_parallel, place / (tensor * plan.expert_parallel)};
}

Coordinates coordinates_of(const ParallelPlan& plan, const ExpertCoordinates& at, std::int64_t stage) {
  const std::int64_t place = at.tensor + plan.expert_tensor() * (at.expert + plan.expert_parallel * at.data);
  const std::int64_t sequence = place / plan.tensor_parallel;
  return {place % plan.tensor_parallel, sequence / plan.context_parallel, stage,
          sequence % plan.context_parallel};
}

std::int64_t gpu_of(const ParallelPlan& plan, std::int64_t rank, std::int64_t gpus_per_node) {
  if (plan.nodes.empty()) return rank;
  const std::int64_t node = plan.nodes[static_cast<std::size_t>(rank / gpus_per_node)];
  return node * gpus_per_node + rank % gpus_per_node;
}

std::int64_t gpus_in_reach(const ParallelPlan& plan, std::int64_t gpus_per_node) {
  if (plan.nodes.empty()) return plan.gpus;
  return (*std::max_element(plan.nodes.begin(), plan.nodes.end()) + 1) * gpus_per_node;
}

std::int64_t tensor_ranks_in_node(const ParallelPlan& plan, std::int64_t gpus_per_node) {
  std::int64_t inside = 0;
  for (Coordinates at; at.tensor < plan.tensor_parallel; ++at.tensor)
    inside += rank_of(plan, at) < gpus_per_node ? 1 : 0;
  return inside;
}

std::int64_t context_ranks_in_node(const ParallelPlan& plan, std::int64_t gpus_per_node) {
  std::int64_t inside = 0;
  for (Coordinates at; at.context < plan.context_parallel; ++at.context)
    inside += rank_of(plan, at) < gpus_per_node ? 1 : 0;
  return inside;
}

std::int64_t data_ranks_in_node(const ParallelPlan& plan, std::int64_t gpus_per_node) {
  std::int64_t inside = 0;
  for (Coordinates at; at.data < plan.data_parallel; ++at.data) {
    for (at.context = 0; at.context < plan.context_parallel; ++at.context)
      inside += rank_of(plan, at) < gpus_per_node ? 1 : 0;
  }
  return inside;
}

std::string to_string(const RankOrder& order) {
  std::string text;
  for (const Axis axis : order) {
    static constexpr std::array<const char*, 3> names = {"tp", "dp", "pp"};
    text += (text.empty() ? "" : "-") + std::string(names[static_cast<std::size_t>(axis)]);
  }
  return text;
}

std::string to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kGpipe:
      return "gpipe";
    case ScheduleKind::kOneFOneB:
      return "1f1b";
    case ScheduleKind::kInterleaved:
      return "interleaved";
    case ScheduleKind::kZeroBubbleH1:
      return "zb-h1";
    case ScheduleKind::kZeroBubbleH2:
      return "zb-h2";
  }
  return "";
}

std::string to_string(ContextCommunication communication) {
  switch (communication) {
    case ContextCommunication::kP2p:
      return "p2p";
    case ContextCommunication::kAllGather:
      return "all_gather";
    case ContextCommunication::kAllToAll:
      return "a2a";
  }
  return "";
}

std::string to_string(RecomputeGranularity granularity) {
  switch (granularity) {
    case RecomputeGranularity::kNone:
      return "none";
    case RecomputeGranularity::kSelective:
      return "selective";
    case RecomputeGranularity::kOperators:
      return "operators";
    case RecomputeGranularity::kFull:
      return "full";
  }
  return "";
}

std::string to_string(RecomputeMethod method) {
  return method == RecomputeMethod::kUniform ? "uniform" : "block";
}

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kFp16:
      return "fp16";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp8:
      return "fp8";
  }
  return "";
}

std::string to_string(Fp8Recipe recipe) {
  switch (recipe) {
    case Fp8Recipe::kDelayed:
      return "delayed";
    case Fp8Recipe::kTensorwise:
      return "tensorwise";
    case Fp8Recipe::kRowwise:
      return "rowwise";
    case Fp8Recipe::kMxfp8:
      return "mxfp8";
    case Fp8Recipe::kBlockwise:
      return "blockwise";
  }
  return "";
}

std::string to_string(Sharding sharding) {
  switch (sharding) {
    case Sharding::kNone:
      return "none";
    case Sharding::kZero1:
      return "zero1";
    case Sharding::kZero2:
      return "zero2";
    case Sharding::kZero3:
      return "zero3";
  }
  return "";
}

std::string to_string(Launch launch) {
  switch (launch) {
    case Launch::kEager:
      return "eager";
    case Launch::kCompiled:
      return "compiled";
    case Launch::kCudaGraph:
      return "cuda-graph";
    case Launch::kBlocking:
      return "blocking";
  }
  return "";
}

std::string to_string(Fusion fusion) {
  switch (fusion) {
    case Fusion::kNone:
      return "none";
    case Fusion::kStandard:
      return "standard";
    case Fusion::kCompiled:
      return "compiled";
  }
  return "";
}

std::string to_string(BackwardPrefetch prefetch) {
  switch (prefetch) {
    case BackwardPrefetch::kPre:
      return "pre";
    case BackwardPrefetch::kPost:
      return "post";
    case BackwardPrefetch::kNone:
      return "none";
  }
  return "";
}

std::string to_string(OffloadTarget target) {
  switch (target) {
    case OffloadTarget::kNone:
      return "none";
    case OffloadTarget::kCpu:
      return "cpu";
    case OffloadTarget::kNvme:
      return "nvme";
  }
  return "";
}

Framework usual_framework(Sharding sharding) {
  const bool gathers = sharding == Sharding::kZero2 || sharding == Sharding::kZero3;
  return gathers ? Framework::kFsdp : Framework::kMegatron;
}

bool usual_transformer_engine(Framework framework, model::Attention attention) {
  const bool current = attention == model::Attention::kFlash || attention == model::Attention::kFlash2;
  return framework == Framework::kMegatron && current;
}

FusedLinears usual_fused_linears(Framework framework, bool gated) {
  if (!gated) return {};
  switch (framework) {
    case Framework::kFsdp:
      return {false, false};
    case Framework::kInternEvo:
      return {true, false};
    case Framework::kMegatron:
    case Framework::kDeepSpeed:
      return {};
  }
  return {};
}

bool usual_early_stop(Framework framework) {
  return framework == Framework::kFsdp;
}

std::vector<std::string> fused_names(const FusedLinears& linears) {
  std::vector<std::string> names;
  if (linears.qkv) names.emplace_back("qkv");
  if (linears.mlp) names.emplace_back("mlp");
  return names;
}

std::string to_string(Framework framework) {
  switch (framework) {
    case Framework::kMegatron:
      return "megatron";
    case Framework::kFsdp:
      return "fsdp";
    case Framework::kDeepSpeed:
      return "deepspeed";
    case Framework::kInternEvo:
      return "internevo";
  }
  return "";
}

std::vector<std::string> module_names(const RecomputeModules& modules) {
  std::vector<std::string> names;
  if (modules.core_attention) names.emplace_back("core_attn");
  if (modules.mlp) names.emplace_back("mlp");
  if (modules.norm) names.emplace_back("layernorm");
  if (modules.activation) names.emplace_back("activation");
  if (modules.experts) names.emplace_back("moe");
  return names;
}

std::string to_string(Loss loss) {
  if (loss == Loss::kCompiled) return "compiled";
  return loss == Loss::kFused ? "fused" : "standard";
}

std::string to_string(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdam:
      return "adam";
    case Optimizer::kAdam8Bit:
      return "adam-8bit";
    case Optimizer::kLion:
      return "lion";
    case Optimizer::kSgd:
      return "sgd";
    case Optimizer::kSgdMomentum:
      return "sgd-momentum";
    case Optimizer::kAdafactor:
      return "adafactor";
  }
  return "";
}

}  // namespace trainsim::plan
