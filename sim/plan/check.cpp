// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/plan/rules.hpp"

namespace trainsim::plan {

namespace {

using hardware::ClusterSpec;
using hardware::GpuSpec;
using model::ModelSpec;

/// Peak of 8-bit multiplies on a GPU that can also do the rest of a step, in bf16; else 0.
FlopsPerSecond fp8_peak(const GpuSpec& gpu) {
  return gpu.peak_bf16 > 0 ? gpu.peak_fp8 : 0;
}

void check_precision(const Facts& facts, Problems& problems) {
  const GpuSpec& gpu = facts.cluster.gpu;
  const std::vector<std::pair<Precision, FlopsPerSecond>> peaks = {{Precision::kFp32, gpu.peak_fp32},
                                                                   {Precision::kTf32, gpu.peak_tf32},
                                                                   {Precision::kFp16, gpu.peak_fp16},
                                                                   {Precision::kBf16, gpu.peak_bf16},
                                                                   {Precision::kFp8, fp8_peak(gpu)}};
  const Precision asked = facts.plan.precision;
  const std::string name = to_string(asked);
  std::vector<std::string> legal;
  for (const auto& [precision, peak] : peaks) {
    if (peak <= 0) continue;
    if (precision == asked) return;
    legal.push_back(to_string(precision));
  }
  const bool half = asked == Precision::kFp8 && gpu.peak_fp8 > 0;
  std::string message = name;
  message.append(": the GPU ").append(gpu.name).append(" has no ").append(half ? "bf16" : name);
  message += half ? " peak, which attention and the head need" : " peak";
  if (!legal.empty()) message += "; legal here: " + join_alternatives(legal);
  problems.push_back({"plan.precision", std::move(message)});
}

void check_bucket(const Facts& facts, Problems& problems) {
  if (facts.plan.bucket_parameters >= 1) return;
  problems.push_back(
      {"plan.bucket_parameters",
       text(facts.plan.bucket_parameters) + " parameters make no bucket; the least is 1, and 40M is usual"});
}

void check_fp8_schedule(const Facts& facts, Problems& problems) {
  if (!facts.plan.uses_fp8() || !facts.plan.splits_backward()) return;
  problems.push_back({"plan.precision",
                      "fp8 with schedule " + to_string(facts.plan.schedule) +
                          " is not supported by this version, which does not know what weight gradients in 8 "
                          "bits keep until their slot; write precision: bf16, or schedule: 1f1b"});
}

void check_fp8_parameters(const Facts& facts, Problems& problems) {
  const ParallelPlan& plan = facts.plan;
  if (!plan.uses_fp8() || !plan.fp8.parameters) return;
  std::string with;
  if (plan.framework == Framework::kDeepSpeed) with = "framework deepspeed, which has no weights in 8 bits";
  if (plan.lora.active()) with = "plan.lora, whose frozen weights are held in bf16";
  if (plan.offload.active()) with = "state on the host, where weights are in bf16";
  if (with.empty()) return;
  problems.push_back({"plan.fp8.parameters", "true does not go with " + with + "; write false"});
}

std::vector<Rule> number_rules() {
  return {{{"plan.precision", "cluster.gpu"}, check_precision},
          {{"plan.precision", "plan.schedule"}, check_fp8_schedule},
          {{"plan.precision", "plan.fp8", "plan.lora", "plan.sharding", "software.framework"},
           check_fp8_parameters},
          {{"plan.bucket_parameters"}, check_bucket}};
}

/// Whether one field path is the other or lies around it.
bool overlap(std::string_view a, std::string_view b) {
  const std::string_view outer = a.size() < b.size() ? a : b;
  const std::string_view inner = a.size() < b.size() ? b : a;
  if (!inner.starts_with(outer)) return false;
  return inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[';
}

bool applies(const Rule& rule, const std::vector<std::string>& unread) {
  for (const std::string_view field : rule.fields) {
    const auto covers = [&](const std::string& other) { return overlap(field, other); };
    if (std::any_of(unread.begin(), unread.end(), covers)) return false;
  }
  return true;
}

}  // namespace

Problems check_cluster(const ClusterSpec& cluster, std::int64_t gpus) {
  ParallelPlan plan;
  plan.gpus = plan.data_parallel = gpus;
  const ModelSpec model;
  const Facts facts{plan, model, cluster};
  Problems problems;
  for (const Rule& rule : world_rules()) rule.apply(facts, problems);
  return problems;
}

Problems check(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
               const std::vector<std::string>& unread) {
  const Facts facts{plan, model, cluster};
  Problems problems;
  for (const auto& group :
       {tensor_rules(), context_rules(), world_rules(), batch_rules(), pipeline_rules(), operator_rules(),
        offload_rules(), expert_rules(), framework_rules(), number_rules()}) {
    for (const Rule& rule : group) {
      if (applies(rule, unread)) rule.apply(facts, problems);
    }
  }
  return problems;
}

}  // namespace trainsim::plan
