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

void check_precision(const Facts& facts, Problems& problems) {
  const GpuSpec& gpu = facts.cluster.gpu;
  const std::vector<std::pair<Precision, FlopsPerSecond>> peaks = {{Precision::kFp32, gpu.peak_fp32},
                                                                   {Precision::kFp16, gpu.peak_fp16},
                                                                   {Precision::kBf16, gpu.peak_bf16}};
  const Precision asked = facts.plan.precision;
  const std::string name = to_string(asked);
  std::vector<std::string> legal;
  for (const auto& [precision, peak] : peaks) {
    if (peak <= 0) continue;
    if (precision == asked) return;
    legal.push_back(to_string(precision));
  }
  const bool has_peak = asked == Precision::kFp8 && gpu.peak_fp8 > 0;
  const std::string lacks = "the GPU " + gpu.name + " has no " + name + " peak";
  std::string message = name;
  if (asked == Precision::kFp8) message += " is not supported by this version";
  if (!has_peak) message += (asked == Precision::kFp8 ? ", and " : ": ") + lacks;
  if (!legal.empty()) message += "; legal here: " + join_alternatives(legal);
  problems.push_back({"plan.precision", std::move(message)});
}

void check_bucket(const Facts& facts, Problems& problems) {
  if (facts.plan.bucket_parameters >= 1) return;
  problems.push_back(
      {"plan.bucket_parameters",
       text(facts.plan.bucket_parameters) + " parameters make no bucket; the least is 1, and 40M is usual"});
}

std::vector<Rule> number_rules() {
  return {{{"plan.precision", "cluster.gpu"}, check_precision}, {{"plan.bucket_parameters"}, check_bucket}};
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
  for (const auto& group : {tensor_rules(), context_rules(), world_rules(), batch_rules(), pipeline_rules(),
                            offload_rules(), number_rules()}) {
    for (const Rule& rule : group) {
      if (applies(rule, unread)) rule.apply(facts, problems);
    }
  }
  return problems;
}

}  // namespace trainsim::plan
