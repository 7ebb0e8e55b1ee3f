// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.hpp"

#include <algorithm>
#include <numeric>

namespace trainsim::plan {

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

std::int64_t rank_of(const ParallelPlan& plan, const Coordinates& at) {
  return at.tensor + plan.tensor_parallel * (at.data + plan.data_parallel * at.stage);
}

Coordinates coordinates_of(const ParallelPlan& plan, std::int64_t rank) {
  Coordinates at;
  at.tensor = rank % plan.tensor_parallel;
  at.data = rank / plan.tensor_parallel % plan.data_parallel;
  at.stage = rank / plan.tensor_parallel / plan.data_parallel;
  return at;
}

std::string to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kGpipe:
      return "gpipe";
    case ScheduleKind::kOneFOneB:
      return "1f1b";
    case ScheduleKind::kInterleaved:
      return "interleaved";
  }
  return "";
}

std::string to_string(RecomputeGranularity granularity) {
  switch (granularity) {
    case RecomputeGranularity::kNone:
      return "none";
    case RecomputeGranularity::kSelective:
      return "selective";
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
    case Precision::kFp16:
      return "fp16";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp8:
      return "fp8";
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

}  // namespace trainsim::plan
