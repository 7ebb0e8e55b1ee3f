// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/memory/ledger.hpp"
#include "sim/memory/reservation.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"
#include "sim/program/traffic.hpp"
#include "sim/training/training_run.hpp"

namespace trainsim::report {

/// What a summary is made from.
struct Run {
  std::string name;
  std::string description;
  const model::ModelSpec& model;
  const hardware::ClusterSpec& cluster;
  const plan::ParallelPlan& plan;
  const program::Job& job;
  const program::Timeline& timeline;
  /// By program.
  const std::vector<memory::Profile>& memory;
  const std::vector<std::optional<memory::Reservation>>& reserved;
  program::Traffic traffic;
  /// Step time if every transfer were alone on its links; nothing when it was not worked out.
  std::optional<Seconds> uncontended_step_time;
  /// "flow", "ideal" or "free", as in the configuration.
  std::string network;
  /// Dense peak of the plan's precision.
  FlopsPerSecond peak = 0;
  /// Time of the step on one imaginary GPU (docs/output.md, scaling_efficiency).
  Seconds single_gpu_time = 0;
  /// The schedule's closed form, if it has one.
  std::optional<double> bubble_ratio_theory;
  std::vector<std::string> warnings;
  /// Host memory that offloaded state takes on the fullest node.
  Bytes host_memory = 0;
  /// Real time that the simulation took.
  Seconds wall_time = 0;
};

/// One simulated rank in the result.
struct RankSummary {
  std::int64_t rank = 0;
  std::int64_t represents = 1;
  std::int64_t stage = 0;
  std::int64_t tensor_rank = 0;
  std::int64_t data_rank = 0;
  std::int64_t context_rank = 0;
  std::int64_t layers = 0;
  /// Factor on its compute times; above 1 for a GPU declared slow.
  double slowdown = 1.0;
  Seconds busy = 0;
  /// Time between the first forward and the last backward of the pipeline in which the rank was not busy.
  Seconds bubble = 0;
  std::array<Seconds, program::kCauses> by_cause{};
  Bytes peak_memory = 0;
  /// What the caching allocator holds; only where it was replayed.
  std::optional<memory::Reservation> reserved;
  program::MemoryByCategory memory_at_peak{};
  /// When the peak is reached.
  Seconds peak_time = 0;
  /// Index into Summary::stage_memory.
  std::size_t memory = 0;
  /// Where the peak was: "forward of micro-batch 3, chunk 1", or "outside the pipeline slots".
  std::string peak_at;
};

/// What a step spends on one kind of kernel, all its runs together, mean over ranks.
struct KernelShare {
  std::string name;
  std::string kind;
  /// The operation it belongs to, as `op.NAME.speedup` calls it; empty for measured times.
  std::string op;
  Seconds seconds = 0;
  double runs = 0;
  Flops flops = 0;
  /// Moved to and from device memory.
  double bytes = 0;
};

/// Memory over a stretch of the step: a slot, or what lies between two.
struct MemorySpan {
  Seconds begin = 0;
  Seconds end = 0;
  /// When the highest of it is reached, if memory follows compute within a slot.
  Seconds peak_time = 0;
  /// "forward of micro-batch 3", or empty outside slots.
  std::string slot;
  Bytes at_begin = 0;
  Bytes peak = 0;
  Bytes at_end = 0;
};

/// Memory of the ranks that run one program.
struct StageMemory {
  /// By category: the most that each has at any time.
  program::MemoryByCategory largest{};
  /// What is alive at the peak, largest first.
  std::vector<memory::LiveTensor> tensors;
  std::vector<MemorySpan> curve;
};

/// Whether a plan fits into memory.
enum class Verdict {
  kFits,
  /// It should, but with less to spare than memory is known to.
  kBorderline,
  kDoesNotFit,
};
/// "fits", "borderline", "does not fit".
const char* to_string(Verdict verdict);

/// The verdict on a rank that allocates `peak` and whose allocator holds `reserved`, on a GPU with
/// `available` bytes less what is kept for contexts and libraries. Borderline: it fits, but by less than
/// memory is known to (3 % of the peak, docs/accuracy.md), or the allocator needs more for its fragments.
Verdict judge_memory(Bytes peak, Bytes reserved, Bytes available);
/// Why that is the verdict: "the allocator would hold 92.9 GiB of 78.5 GiB", or what is left or too much.
std::string verdict_reason(Bytes peak, Bytes reserved, Bytes available);

/// A change of the configuration, what it would do to memory, and what it would cost.
struct MemoryChange {
  /// Overrides, as for --set.
  std::vector<std::string> overrides;
  Verdict verdict = Verdict::kFits;
  Bytes peak_memory = 0;
  Bytes peak_reserved = 0;
  Bytes headroom = 0;
  /// Step time against that of the plan as it is, both without contention between transfers.
  double relative_step_time = 1;
};

/// What a constant does to the step time when it alone is changed.
struct ConstantEffect {
  /// Dotted path in the configuration.
  std::string name;
  /// How well it is known: "measured", "fitted", "guess".
  std::string grade;
  std::string value;
  /// Ends of its range, and the step times there.
  std::string low;
  std::string high;
  Seconds step_time_low = 0;
  Seconds step_time_high = 0;

  /// How far apart the two step times are.
  Seconds effect() const {
    return step_time_low < step_time_high ? step_time_high - step_time_low : step_time_low - step_time_high;
  }
};

/// How sure the step time is, as far as the constants go.
struct Uncertainty {
  std::size_t samples = 0;
  std::uint64_t seed = 0;
  /// Between these lie 90 % of the step times with sampled constants.
  Seconds low = 0;
  Seconds high = 0;
  /// Largest effect first.
  std::vector<ConstantEffect> constants;
};

/// What a step would take if one thing were 10 % better.
struct SensitivityRow {
  /// As `--what-if` calls it, "gpu.hbm_bandwidth" or "op.matmul.speedup", and in words.
  std::string name;
  std::string meaning;
  /// What was simulated, as `--what-if` takes it.
  std::string change;
  /// Whether it is an operation, and no part of the hardware.
  bool operation = false;
  Seconds step_time = 0;
  /// Whether the plan fits then.
  Verdict verdict = Verdict::kFits;

  /// What it takes off a step time of `base`.
  Seconds gain(Seconds base) const { return base - step_time; }
  /// Relative loss of step time per relative change, both as logarithms: 1 where the step is bound by this
  /// alone.
  double elasticity(Seconds base) const;
};

/// Each thing that the step may be bound by, 10 % better on its own; the largest gain first.
struct Sensitivity {
  static constexpr double kFactor = 1.1;
  std::vector<SensitivityRow> rows;
};

/// What a step would be with other ranks as neighbours, or on other nodes.
struct PlacementResult {
  Seconds step_time = 0;
  /// Mean over ranks, by program::Cause.
  std::array<Seconds, program::kCauses> breakdown{};
  /// By name of Parties: the most nodes that such a communicator lies on.
  std::map<std::string, std::int64_t> nodes;
  /// By name of Parties: who else uses the link that holds it up most.
  std::map<std::string, std::set<std::string>> company;
};

/// A placement that was simulated.
struct PlacementRow {
  /// "order tp-pp-dp", "one node of each leaf".
  std::string meaning;
  /// As for --set.
  std::vector<std::string> overrides;
  PlacementResult result;
};

/// Other placements of the same plan, the shortest step first.
struct Placement {
  std::vector<PlacementRow> rows;
  /// Why no other nodes were tried; empty if they were.
  std::string note;
};

/// Step times of several steps with jitter.
struct JitterResult {
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  /// Standard deviations, as configured.
  double compute = 0;
  double network = 0;
  Seconds mean = 0;
  /// Half, 90 % and 99 % of the steps take at most that.
  Seconds p50 = 0;
  Seconds p90 = 0;
  Seconds p99 = 0;
};

/// The result of a run: every number that any output shows. Formats only print it.
struct Summary {
  std::string name;
  std::string description;
  Seconds step_time = 0;
  double tokens_per_second = 0;
  double tokens_per_second_per_gpu = 0;
  double samples_per_second = 0;
  double model_tflops_per_gpu = 0;
  double hardware_tflops_per_gpu = 0;
  double mfu = 0;
  double hfu = 0;
  double bubble_ratio = 0;
  double bubble_ratio_stage = 0;
  std::optional<double> bubble_ratio_theory;
  double scaling_efficiency = 0;
  /// All but kDoesNotFit.
  bool fits = true;
  Verdict verdict = Verdict::kFits;
  Bytes peak_memory = 0;
  /// Of the fullest rank: what the caching allocator holds.
  Bytes peak_reserved = 0;
  /// Of the fullest rank: how often a step makes the allocator give cached memory back, at least.
  std::int64_t allocator_retries = 0;
  Bytes memory_capacity = 0;
  Bytes memory_reserve = 0;
  /// Capacity less reserve less peak of the fullest rank; negative when it does not fit.
  Bytes memory_headroom = 0;
  /// Of the fullest node, what offloaded state takes and what there is; 0 when nothing is offloaded.
  Bytes host_memory = 0;
  Bytes host_memory_capacity = 0;
  /// Mean over ranks, by program::Cause; adds up to step_time.
  std::array<Seconds, program::kCauses> breakdown{};
  std::vector<RankSummary> ranks;
  std::vector<StageMemory> stage_memory;
  /// Kernels of the step by time, largest first.
  std::vector<KernelShare> kernels;
  /// What was sent, and over which links, the busiest first.
  program::Traffic traffic;
  /// What of the step time comes from transfers that share links; nothing when links were not simulated.
  std::optional<Seconds> contention;
  /// Share of the step in which the GPU waits for the host to launch kernels.
  double launch_bound_share = 0;
  double parameters = 0;
  double model_flops = 0;
  double hardware_flops = 0;
  Seconds single_gpu_time = 0;
  FlopsPerSecond peak_flops = 0;
  /// What would help, cheapest first; only looked for when it does not fit, or was asked for.
  std::vector<MemoryChange> changes;
  /// Only when it was asked for.
  std::optional<Uncertainty> uncertainty;
  std::optional<Sensitivity> sensitivity;
  std::optional<Placement> placement;
  /// Only with steps and jitter.
  std::optional<JitterResult> jitter;
  /// Only with a section `run`.
  std::optional<training::TrainingRun> run;
  std::vector<std::string> warnings;
  /// Sentences that explain the numbers, most important first.
  std::vector<std::string> notes;
  std::string network;
  Seconds wall_time = 0;
  std::int64_t actors = 0;
  std::int64_t activities = 0;
  bool folded = false;
  std::int64_t world_size = 1;
  std::string gpu_name;
  /// What a GPU may draw and is rated at (0 when not known), and the share of its clock that this leaves.
  Watts power_limit = 0;
  Watts rated_power = 0;
  double clock_share = 1;
  std::string cluster_name;
  model::ModelSpec model;
  plan::ParallelPlan plan;
};

/// Seconds of a step by what they went for, mean over all ranks of a job.
std::array<Seconds, program::kCauses> mean_by_cause(const program::Job& job,
                                                    const program::Timeline& timeline);

/// Computes every result from a run.
Summary summarize(const Run& run);

/// Why a plan does not fit, in half a sentence: "5.28 GiB too much on the fullest rank"; empty when it fits.
std::string misfit(const Summary& summary);

/// Rank summary with the largest peak.
const RankSummary& fullest_rank(const Summary& summary);
/// What the allocator holds for a rank, or what is allocated where it was not replayed.
Bytes reserved_by(const RankSummary& rank);
/// "; gives cached memory back 3 times a step" if the fullest rank fits and its allocator has to: each time
/// it waits for the GPU, which is not in the step time.
std::string retries_text(const Summary& summary);

}  // namespace trainsim::report
