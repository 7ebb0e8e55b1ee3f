// SPDX-License-Identifier: Apache-2.0
#include "sim/report/summary.hpp"

#include <algorithm>
#include <map>

#include "sim/report/format.hpp"
#include "sim/report/memory_curve.hpp"
#include "sim/report/notes.hpp"

namespace trainsim::report {

namespace {

using program::RankTimeline;

/// Share of a peak that the model may be off: the worst error of what the allocator holds, 3.1 %, among the
/// runs whose software is known in full (simumax in docs/accuracy.md).
constexpr double kMemoryUncertainty = 0.03;

/// When a rank reaches its peak, if its slot's memory follows its compute.
Seconds peak_time(const memory::Profile& memory, const RankTimeline& timeline) {
  const auto slot = static_cast<std::uint32_t>(memory.peak_slot);
  for (const program::SlotSpan& span : timeline.slots) {
    if (memory.peak_slot >= 0 && span.slot == slot)
      return span.begin + memory.peak_share * (span.end - span.begin);
  }
  // State alone at the begin, or the optimizer's needs at the end.
  return memory.peak_point == 0 ? 0 : timeline.last_slot;
}

/// Window of the pipeline: from the first slot's begin to the last slot's end over all ranks.
struct Window {
  Seconds begin = 0;
  Seconds end = 0;
  Seconds longest_stage = 0;
};

Window pipeline_window(const program::Timeline& timeline) {
  Window window{timeline.step_time, 0, 0};
  for (const RankTimeline& rank : timeline.ranks) {
    window.begin = std::min(window.begin, rank.first_slot);
    window.end = std::max(window.end, rank.last_slot);
    window.longest_stage = std::max(window.longest_stage, rank.last_slot - rank.first_slot);
  }
  return window;
}

std::int64_t layers_on(const plan::ParallelPlan& plan, const std::vector<std::int64_t>& layers,
                       std::int64_t stage) {
  std::int64_t held = 0;
  for (std::int64_t chunk = 0; chunk < plan.virtual_pipeline; ++chunk) {
    held += layers[static_cast<std::size_t>(chunk * plan.pipeline_parallel + stage)];
  }
  return held;
}

void add_ranks(const Run& run, Summary& summary) {
  const Window window = pipeline_window(run.timeline);
  const std::vector<std::int64_t> layers = plan::stage_layers(run.plan, run.model);
  const auto world = static_cast<double>(run.job.world_size);
  double busy = 0;
  for (std::size_t i = 0; i < run.job.ranks.size(); ++i) {
    const program::Rank& rank = run.job.ranks[i];
    const RankTimeline& timeline = run.timeline.ranks[i];
    const double weight = static_cast<double>(rank.represents) / world;
    RankSummary row;
    row.rank = rank.id;
    row.represents = rank.represents;
    row.stage = rank.stage;
    row.tensor_rank = rank.tensor_rank;
    row.data_rank = rank.data_rank;
    row.context_rank = rank.context_rank;
    row.layers = layers_on(run.plan, layers, rank.stage);
    row.slowdown = rank.slowdown;
    row.busy = timeline.busy;
    row.bubble = window.end - window.begin - timeline.busy;
    row.by_cause = timeline.by_cause;
    const memory::Profile& memory = run.memory[rank.program];
    row.peak_memory = memory.peak;
    row.reserved = run.reserved[rank.program];
    row.memory_at_peak = memory.at_peak;
    row.peak_time = peak_time(memory, timeline);
    row.peak_at = slot_name(run.job.programs[rank.program], memory.peak_slot);
    row.memory = rank.program;
    summary.ranks.push_back(row);
    busy += weight * timeline.busy;
  }
  summary.breakdown = mean_by_cause(run.job, run.timeline);
  if (window.end > window.begin) {
    summary.bubble_ratio = 1.0 - busy / (window.end - window.begin);
    summary.bubble_ratio_stage = 1.0 - busy / window.longest_stage;
  }
}

/// Adds up kernels over all ranks: how often each segment runs times what is in it.
void add_kernels(const Run& run, Summary& summary) {
  // Mean seconds per rank count slow GPUs for longer; operations are the same on all.
  std::vector<double> weight(run.job.programs.size(), 0.0);
  std::vector<double> ranks(run.job.programs.size(), 0.0);
  const auto world = static_cast<double>(run.job.world_size);
  for (const program::Rank& rank : run.job.ranks) {
    const auto represents = static_cast<double>(rank.represents);
    weight[rank.program] += represents * rank.slowdown / world;
    ranks[rank.program] += represents;
  }
  std::map<std::string, KernelShare> by_name;
  for (std::size_t p = 0; p < run.job.programs.size(); ++p) {
    const program::Program& program = run.job.programs[p];
    std::vector<double> runs(program.segments.size(), 0.0);
    for (const program::Instruction& instruction : program.stream(program::Stream::kCompute)) {
      if (instruction.op == program::Opcode::kCompute) runs[instruction.id] += 1;
    }
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
      const program::Segment& segment = program.segments[s];
      for (const program::Kernel& kernel : segment.kernels) {
        KernelShare& share = by_name[kernel.name];
        share.name = kernel.name;
        share.kind = program::to_string(kernel.kind);
        if (const auto op = program::op_class(kernel.kind, kernel.name)) share.op = to_string(*op);
        const double mean_runs = runs[s] * ranks[p] / world;
        share.seconds += runs[s] * weight[p] * kernel.seconds;
        share.runs += mean_runs;
        share.flops += mean_runs * kernel.flops;
        share.bytes += mean_runs * kernel.bytes;
      }
    }
    summary.hardware_flops += ranks[p] * program.flops;
  }
  for (auto& [name, share] : by_name) {
    if (share.seconds > 0) summary.kernels.push_back(std::move(share));
  }
  std::stable_sort(summary.kernels.begin(), summary.kernels.end(),
                   [](const KernelShare& a, const KernelShare& b) { return a.seconds > b.seconds; });
  summary.launch_bound_share =
      summary.breakdown[static_cast<std::size_t>(program::Cause::kLaunch)] / summary.step_time;
}

void add_rates(const Run& run, Summary& summary) {
  const auto batch = static_cast<double>(run.plan.global_batch_size);
  const auto gpus = static_cast<double>(run.plan.gpus);
  const Seconds step = summary.step_time;
  summary.samples_per_second = batch / step;
  summary.tokens_per_second = summary.samples_per_second * static_cast<double>(run.model.sequence_length);
  summary.tokens_per_second_per_gpu = summary.tokens_per_second / gpus;
  summary.model_flops = model::model_flops(run.model, batch);
  if (run.plan.lora.active()) summary.model_flops -= model::weight_gradient_flops(run.model, batch);
  summary.model_tflops_per_gpu = summary.model_flops / step / gpus / kTera;
  summary.hardware_tflops_per_gpu = summary.hardware_flops / step / gpus / kTera;
  summary.mfu = summary.model_flops / (step * gpus * run.peak);
  summary.hfu = summary.hardware_flops / (step * gpus * run.peak);
  summary.scaling_efficiency = run.single_gpu_time / (gpus * step);
  if (summary.mfu > 1.0) {
    summary.warnings.push_back(
        "an MFU of " + percent(summary.mfu) +
        " is more than the GPU can do; check plan.profile, the precision and the GPU's peak");
  }
}

void add_memory(const Run& run, Summary& summary) {
  summary.memory_capacity = run.cluster.gpu.memory;
  summary.memory_reserve = run.plan.memory_reserve;
  for (std::size_t p = 0; p < run.memory.size(); ++p) {
    const auto first = std::find_if(run.job.ranks.begin(), run.job.ranks.end(),
                                    [p](const program::Rank& rank) { return rank.program == p; });
    const program::RankTimeline& timeline =
        run.timeline.ranks[static_cast<std::size_t>(first - run.job.ranks.begin())];
    const memory::Profile& profile = run.memory[p];
    summary.stage_memory.push_back(
        {profile.largest, profile.alive_at_peak, memory_curve(run.job.programs[p], profile, timeline)});
  }
  const RankSummary& fullest = fullest_rank(summary);
  summary.peak_memory = fullest.peak_memory;
  summary.peak_reserved = reserved_by(fullest);
  if (fullest.reserved) summary.allocator_retries = fullest.reserved->retries;
  summary.memory_headroom = summary.memory_capacity - summary.memory_reserve - summary.peak_memory;
  summary.verdict = judge_memory(summary.peak_memory, summary.peak_reserved,
                                 summary.memory_capacity - summary.memory_reserve);
  if (run.plan.uses_host()) {
    summary.host_memory = run.host_memory;
    summary.host_memory_capacity = run.cluster.host->memory;
    if (summary.host_memory > summary.host_memory_capacity) summary.verdict = Verdict::kDoesNotFit;
  }
  summary.fits = summary.verdict != Verdict::kDoesNotFit;
}

void add_traffic(const Run& run, Summary& summary) {
  summary.traffic = run.traffic;
  const auto busier = [](const program::LinkTraffic& a, const program::LinkTraffic& b) {
    return a.total() / a.bandwidth > b.total() / b.bandwidth;
  };
  std::stable_sort(summary.traffic.links.begin(), summary.traffic.links.end(), busier);
  // Below a rounding error there is none.
  if (run.uncontended_step_time)
    summary.contention = std::max(0.0, run.timeline.step_time - *run.uncontended_step_time);
}

}  // namespace

Verdict judge_memory(Bytes peak, Bytes reserved, Bytes available) {
  if (peak > available) return Verdict::kDoesNotFit;
  const auto margin = static_cast<Bytes>(kMemoryUncertainty * static_cast<double>(peak));
  return reserved > available || available - peak < margin ? Verdict::kBorderline : Verdict::kFits;
}

std::string verdict_reason(Bytes peak, Bytes reserved, Bytes available) {
  if (peak > available) return gib(peak - available) + " too much";
  const std::string left = gib(available - peak) + " left";
  if (reserved > available) {
    return left + ", but the allocator's fragments need " + gib(reserved - available) +
           " more (memory.expandable_segments may help)";
  }
  const bool known = judge_memory(peak, reserved, available) == Verdict::kFits;
  return known ? left : left + ", less than the 3 % of the peak to which it is known";
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kBorderline:
      return "borderline";
    case Verdict::kDoesNotFit:
      return "does not fit";
  }
  return "";
}

Bytes reserved_by(const RankSummary& rank) {
  return rank.reserved ? rank.reserved->peak_reserved : rank.peak_memory;
}

std::string misfit(const Summary& summary) {
  std::string text;
  if (summary.fits) return text;
  if (summary.memory_headroom < 0) text = gib(-summary.memory_headroom) + " too much on the fullest rank";
  if (summary.host_memory > summary.host_memory_capacity) {
    if (!text.empty()) text += ", and ";
    text += gib(summary.host_memory - summary.host_memory_capacity) + " too much for the memory of a host";
  }
  return text;
}

std::string retries_text(const Summary& summary) {
  if (!summary.fits || summary.allocator_retries == 0) return "";
  return "; gives cached memory back " + std::to_string(summary.allocator_retries) + " times a step";
}

const RankSummary& fullest_rank(const Summary& summary) {
  return *std::max_element(
      summary.ranks.begin(), summary.ranks.end(),
      [](const RankSummary& a, const RankSummary& b) { return a.peak_memory < b.peak_memory; });
}

std::array<Seconds, program::kCauses> mean_by_cause(const program::Job& job,
                                                    const program::Timeline& timeline) {
  std::array<Seconds, program::kCauses> mean{};
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const double weight = static_cast<double>(job.ranks[i].represents) / static_cast<double>(job.world_size);
    for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += weight * timeline.ranks[i].by_cause[c];
  }
  return mean;
}

Summary summarize(const Run& run) {
  Summary summary;
  summary.name = run.name;
  summary.description = run.description;
  summary.step_time = run.timeline.step_time;
  summary.bubble_ratio_theory = run.bubble_ratio_theory;
  summary.parameters = model::total_parameters(run.model);
  summary.single_gpu_time = run.single_gpu_time;
  summary.peak_flops = run.peak;
  summary.warnings = run.warnings;
  summary.network = run.network;
  summary.wall_time = run.wall_time;
  summary.actors = run.timeline.actors;
  summary.activities = run.timeline.activities;
  summary.folded = run.job.folded;
  summary.world_size = run.job.world_size;
  summary.gpu_name = run.cluster.gpu.name;
  summary.power_limit = run.cluster.gpu.power_limit;
  summary.rated_power = run.cluster.gpu.rated_power;
  summary.clock_share = run.cluster.gpu.clock_share();
  summary.cluster_name = run.cluster.name;
  summary.model = run.model;
  summary.plan = run.plan;
  add_ranks(run, summary);
  add_kernels(run, summary);
  add_rates(run, summary);
  add_memory(run, summary);
  add_traffic(run, summary);
  summary.notes = explain(summary);
  return summary;
}

}  // namespace trainsim::report
