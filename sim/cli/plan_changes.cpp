// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_changes.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/cli/simulate.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;
using plan::ParallelPlan;
using plan::RecomputeGranularity;

struct Candidate {
  std::string label;
  Overrides overrides;
};

/// "96 → 192".
std::string from_to(std::int64_t from, std::int64_t to) {
  return std::to_string(from) + " → " + std::to_string(to);
}

void add_batches(const ParallelPlan& plan, std::vector<Candidate>& list) {
  const std::int64_t batch = plan.global_batch_size;
  const std::int64_t count = plan.micro_batches();
  list.push_back(
      {from_to(count, 2 * count) + " micro-batches (global batch " + from_to(batch, 2 * batch) + ")",
       {assignment("plan.global_batch_size", 2 * batch)}});
  const auto resized = [&](std::int64_t size) {
    list.push_back(
        {"Micro-batch size " + from_to(plan.micro_batch_size, size) + " (same batch)",
         {assignment("plan.micro_batch_size", size), assignment("plan.global_batch_size", batch)}});
  };
  resized(2 * plan.micro_batch_size);
  if (plan.micro_batch_size % 2 == 0) resized(plan.micro_batch_size / 2);
}

void add_chunks(const Experiment& experiment, std::vector<Candidate>& list) {
  const ParallelPlan& plan = experiment.plan;
  const std::int64_t chunks = plan.virtual_pipeline;
  if (plan.pipeline_parallel < 2 || !plan.pipeline_layout.empty()) return;
  const auto divides = [&](std::int64_t v) {
    return experiment.model.num_layers % (plan.pipeline_parallel * v) == 0;
  };
  const std::int64_t most = experiment.model.num_layers / plan.pipeline_parallel;
  std::int64_t more = chunks + 1;
  while (more <= most && !divides(more)) ++more;
  const auto add = [&](std::int64_t v) {
    const std::string schedule = v > 1 ? "interleaved" : "1f1b";
    list.push_back(
        {from_to(chunks, v) + " model chunks per stage" + (plan.splits_backward() ? ", " + schedule : ""),
         {assignment("plan.virtual_pipeline", v), "plan.schedule=" + schedule}});
  };
  if (more <= most) add(more);
  std::int64_t fewer = chunks - 1;
  while (fewer > 1 && !divides(fewer)) --fewer;
  if (fewer >= 1) add(fewer);
}

void add_recomputation(const ParallelPlan& plan, std::vector<Candidate>& list) {
  if (!plan.profile.empty()) return;
  const RecomputeGranularity now = plan.recompute.granularity;
  if (now != RecomputeGranularity::kNone) list.push_back({"No recomputation", {"plan.recompute=none"}});
  if (now != RecomputeGranularity::kSelective)
    list.push_back({"Selective recomputation", {"plan.recompute=selective"}});
  if (now != RecomputeGranularity::kFull) list.push_back({"Full recomputation", {"plan.recompute=full"}});
}

void add_splits(const ParallelPlan& plan, std::vector<Candidate>& list) {
  const std::int64_t tensor = plan.tensor_parallel;
  const std::int64_t pipeline = plan.pipeline_parallel;
  const auto add = [&](std::int64_t t, std::int64_t p) {
    const std::int64_t data = plan.gpus / (t * plan.context_parallel * p);
    std::string label;
    const auto name = [&label](const char* dimension, std::int64_t from, std::int64_t to) {
      if (from == to) return;
      label += std::string(label.empty() ? "" : ", ").append(dimension).append(" ").append(from_to(from, to));
    };
    name("TP", tensor, t);
    name("PP", pipeline, p);
    name("DP", plan.data_parallel, data);
    list.push_back({label, with_split(plan, t, p)});
  };
  if (tensor % 2 == 0) add(tensor / 2, pipeline);
  if (pipeline % 2 == 0) add(tensor, pipeline / 2);
  if (plan.data_parallel % 2 == 0) {
    add(2 * tensor, pipeline);
    add(tensor, 2 * pipeline);
  }
  if (tensor % 2 == 0) add(tensor / 2, 2 * pipeline);
  if (pipeline % 2 == 0) add(2 * tensor, pipeline / 2);
}

void add_switches(const ParallelPlan& plan, std::vector<Candidate>& list) {
  if (plan.tensor_parallel > 1 && !plan.sequence_parallel)
    list.push_back({"Sequence parallelism", {"plan.sequence_parallel=true"}});
  if (plan.tensor_parallel > 1 && !plan.overlap_tensor_communication)
    list.push_back(
        {"Tensor-parallel communication beside compute", {"plan.overlap_tensor_communication=true"}});
  if (plan.data_context_ranks() > 1) {
    if (plan.sharding == plan::Sharding::kNone) list.push_back({"ZeRO-1", {"plan.sharding=zero1"}});
    if (!plan.overlap_gradient_reduction)
      list.push_back({"Gradient reduction beside backward", {"plan.overlap_gradient_reduction=true"}});
    if (plan.sharding == plan::Sharding::kZero1 && !plan.overlap_parameter_gather)
      list.push_back({"Parameter gathering beside forward", {"plan.overlap_parameter_gather=true"}});
  }
  if (plan.launch == plan::Launch::kEager && plan.profile.empty())
    list.push_back({"CUDA graphs", {"software.launch=cuda-graph"}});
}

/// Whether the configuration itself says how many micro-batches a step has; then changes must say so, too.
bool gives_accumulation(const Experiment& experiment) {
  return std::none_of(experiment.defaults.begin(), experiment.defaults.end(),
                      [](const auto& entry) { return entry.first == "plan.gradient_accumulation"; });
}

/// Value of a key in overrides, or what it is without them.
std::int64_t value_of(const Overrides& overrides, const std::string& key, std::int64_t otherwise) {
  for (const std::string& text : overrides) {
    if (text.starts_with(key + "=")) return std::stoll(text.substr(key.size() + 1));
  }
  return otherwise;
}

void state_accumulation(const ParallelPlan& plan, Overrides& overrides) {
  const std::int64_t unit = value_of(overrides, "plan.micro_batch_size", plan.micro_batch_size) *
                            value_of(overrides, "plan.data_parallel", plan.data_parallel);
  const std::int64_t batch = value_of(overrides, "plan.global_batch_size", plan.global_batch_size);
  overrides.push_back(assignment("plan.gradient_accumulation", std::max<std::int64_t>(1, batch / unit)));
}

std::vector<Candidate> candidates(const Experiment& experiment) {
  std::vector<Candidate> list;
  add_batches(experiment.plan, list);
  add_chunks(experiment, list);
  add_recomputation(experiment.plan, list);
  if (experiment.plan.profile.empty()) add_splits(experiment.plan, list);
  add_switches(experiment.plan, list);
  if (gives_accumulation(experiment)) {
    for (Candidate& candidate : list) state_accumulation(experiment.plan, candidate.overrides);
  }
  return list;
}

}  // namespace

report::WhatIf plan_changes(const Subject& subject, const Experiment& experiment,
                            const engine::Progress& progress) {
  const report::Summary base = simulate_without_contention(experiment);
  report::WhatIf what_if;
  what_if.step_time = base.step_time;
  const std::vector<Candidate> list = candidates(experiment);
  double done = 0;
  for (const Candidate& candidate : list) {
    if (const std::optional<Experiment> changed = variant(subject, candidate.overrides)) {
      const report::Summary result = simulate_without_contention(*changed);
      const bool keeps_batch = changed->plan.global_batch_size == experiment.plan.global_batch_size;
      what_if.changes.push_back({candidate.label, candidate.overrides, keeps_batch,
                                 result.tokens_per_second / base.tokens_per_second, result.step_time,
                                 result.bubble_ratio, result.breakdown, result.verdict, result.peak_memory,
                                 result.memory_headroom});
    }
    if (progress) progress(++done / static_cast<double>(list.size()));
  }
  std::stable_sort(what_if.changes.begin(), what_if.changes.end(), [](const auto& a, const auto& b) {
    return a.relative_throughput > b.relative_throughput;
  });
  return what_if;
}

}  // namespace trainsim::cli
