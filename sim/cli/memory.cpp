// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/memory.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/simulate.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;
using Overrides = std::vector<std::string>;

/// Largest micro-batch and sequence that are tried.
constexpr std::int64_t kMostMicroBatch = 4096;
constexpr std::int64_t kMostSequence = 16'777'216;
/// Sequence lengths are tried in steps of this.
constexpr std::int64_t kSequenceStep = 1024;
/// Changes that `trainsim memory` shows.
constexpr std::size_t kMostChanges = 8;
/// How many changes are tried together when none alone is enough, how many of the most effective take part,
/// and how many of those that fit are simulated.
constexpr int kMostTogether = 3;
constexpr std::size_t kMostCombined = 8;
constexpr std::size_t kMostTimed = 12;
/// Data-parallel ranks up to which a split is tried when GPUs are counted.
constexpr std::int64_t kMostDataParallel = 64;

Overrides joined(Overrides base, const Overrides& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

std::string assignment(const char* key, std::int64_t value) {
  return std::string(key) + "=" + std::to_string(value);
}

Bytes available(const Experiment& experiment) {
  return experiment.cluster.gpu.memory - experiment.plan.memory_reserve;
}

/// The configuration with changes; nothing if they make it illegal.
std::optional<Experiment> changed(const std::string& subject, const Overrides& overrides) {
  try {
    Experiment experiment = config::load(subject, overrides);
    choose_recomputation(experiment);
    return experiment;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Keeps the batch when the number of data-parallel ranks or the size of micro-batches changes.
Overrides with_split(const plan::ParallelPlan& plan, std::int64_t tensor, std::int64_t pipeline) {
  const std::int64_t data = plan.gpus / (tensor * pipeline);
  return {assignment("plan.tensor_parallel", tensor), assignment("plan.pipeline_parallel", pipeline),
          assignment("plan.data_parallel", data),
          assignment("plan.global_batch_size", plan.global_batch_size)};
}

/// Changes that are worth a try, as lists of overrides.
std::vector<Overrides> candidates(const plan::ParallelPlan& plan) {
  std::vector<Overrides> list;
  using plan::RecomputeGranularity;
  if (plan.recompute.granularity != RecomputeGranularity::kFull) {
    if (plan.recompute.granularity == RecomputeGranularity::kNone)
      list.push_back({"plan.recompute=selective"});
    list.push_back({"plan.recompute={granularity: selective, modules: [core_attn, layernorm, activation]}"});
    list.push_back({"plan.recompute={granularity: selective, modules: [core_attn, mlp]}"});
    list.push_back({"plan.recompute=full"});
  }
  if (plan.tensor_parallel > 1 && !plan.sequence_parallel) list.push_back({"plan.sequence_parallel=true"});
  if (plan.data_parallel > 1) {
    if (plan.sharding == plan::Sharding::kNone) list.push_back({"plan.sharding=zero1"});
    if (plan.sharding != plan::Sharding::kZero3 && plan.pipeline_parallel == 1)
      list.push_back({"plan.sharding=zero3"});
  }
  if (plan.micro_batch_size % 2 == 0) {
    list.push_back({assignment("plan.micro_batch_size", plan.micro_batch_size / 2),
                    assignment("plan.global_batch_size", plan.global_batch_size)});
  }
  if (plan.data_parallel % 2 == 0) {
    list.push_back(with_split(plan, 2 * plan.tensor_parallel, plan.pipeline_parallel));
    list.push_back(with_split(plan, plan.tensor_parallel, 2 * plan.pipeline_parallel));
  }
  if (plan.optimizer == plan::Optimizer::kAdam) list.push_back({"plan.optimizer=adam-8bit"});
  if (plan.gradient_bytes == 4 && plan.precision == plan::Precision::kBf16)
    list.push_back({"plan.gradient_dtype=bf16"});
  if (!plan.expandable_segments) list.push_back({"memory.expandable_segments=true"});
  return list;
}

Seconds ideal_step_time(Experiment experiment) {
  experiment.network = config::NetworkMode::kIdeal;
  return run_job(experiment, build_job(experiment, true), {}).step_time;
}

/// A change with what it does to memory; its time is worked out only if it is shown.
struct Candidate {
  Overrides overrides;
  Experiment experiment;
  MemoryEstimate memory;
  Bytes headroom() const { return available(experiment) - memory.peak; }
};

std::optional<Candidate> candidate_of(const std::string& subject, const Overrides& overrides,
                                      const Overrides& change) {
  std::optional<Experiment> experiment = changed(subject, joined(overrides, change));
  if (!experiment) return std::nullopt;
  const MemoryEstimate memory = estimate_memory(*experiment);
  return Candidate{change, std::move(*experiment), memory};
}

/// Whether two changes set the same key.
bool collide(const Overrides& a, const Overrides& b) {
  const auto key = [](const std::string& text) { return text.substr(0, text.find('=')); };
  return std::any_of(a.begin(), a.end(), [&](const std::string& one) {
    return std::any_of(b.begin(), b.end(), [&](const std::string& other) { return key(one) == key(other); });
  });
}

bool any_fits(const std::vector<Candidate>& list) {
  return std::any_of(list.begin(), list.end(), [](const Candidate& each) { return each.headroom() >= 0; });
}

/// Most effective first.
void sort_by_memory(std::vector<Candidate>& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Candidate& a, const Candidate& b) { return a.headroom() > b.headroom(); });
}

/// Each of `list` together with one of the most effective `single` changes.
std::vector<Candidate> combined(const std::string& subject, const Overrides& overrides,
                                const std::vector<Candidate>& list, const std::vector<Candidate>& single) {
  std::vector<Candidate> result;
  std::set<Overrides> seen;
  for (std::size_t i = 0; i < std::min(kMostCombined, list.size()); ++i) {
    for (std::size_t j = 0; j < std::min(kMostCombined, single.size()); ++j) {
      if (collide(list[i].overrides, single[j].overrides)) continue;
      const Overrides both = joined(list[i].overrides, single[j].overrides);
      Overrides sorted = both;
      std::sort(sorted.begin(), sorted.end());
      if (!seen.insert(sorted).second) continue;
      if (auto candidate = candidate_of(subject, overrides, both)) result.push_back(std::move(*candidate));
    }
  }
  sort_by_memory(result);
  return result;
}

report::MemoryChange change_of(const Candidate& candidate, Seconds base) {
  report::MemoryChange change;
  change.overrides = candidate.overrides;
  change.peak_memory = candidate.memory.peak;
  change.headroom = candidate.headroom();
  change.verdict =
      report::judge_memory(candidate.memory.peak, candidate.memory.reserved, available(candidate.experiment));
  change.relative_step_time = ideal_step_time(candidate.experiment) / base;
  return change;
}

/// Verdict of a configuration with changes; nothing if they make it illegal.
std::optional<bool> fits(const std::string& subject, const Overrides& overrides) {
  const std::optional<Experiment> experiment = changed(subject, overrides);
  if (!experiment) return std::nullopt;
  return estimate_memory(*experiment).peak <= available(*experiment);
}

/// The largest multiple of `step` that fits, between it and `most`; 0 if none does. Memory grows with it.
template <class Try>
std::int64_t largest(std::int64_t step, std::int64_t most, const Try& fits_at) {
  std::int64_t good = 0;
  std::int64_t bad = step;
  while (bad <= most && fits_at(bad)) good = std::exchange(bad, 2 * bad);
  while (bad - good > step) {
    const std::int64_t middle = (good + bad) / (2 * step) * step;
    (fits_at(middle) ? good : bad) = middle;
  }
  return good;
}

report::FleetAnswer largest_of(const MemoryRequest& request, const Experiment& experiment) {
  const plan::ParallelPlan& plan = experiment.plan;
  const bool sequence = request.largest == "sequence_length";
  const auto overrides = [&](std::int64_t value) -> Overrides {
    if (sequence) return {assignment("plan.sequence_length", value)};
    return {assignment("plan.micro_batch_size", value),
            assignment("plan.global_batch_size", value * plan.data_parallel * plan.micro_batches())};
  };
  const auto fits_at = [&](std::int64_t value) {
    return fits(request.subject, joined(request.overrides, overrides(value))).value_or(false);
  };
  const std::int64_t value =
      sequence ? largest(kSequenceStep, kMostSequence, fits_at) : largest(1, kMostMicroBatch, fits_at);
  const std::string note = value == 0 ? "none fits"
                           : sequence ? "tokens (in steps of " + std::to_string(kSequenceStep) + ")"
                                      : "sequences, with as many micro-batches per step";
  return {"Largest " + request.largest + " that fits", value, note};
}

struct Split {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t gpus() const { return tensor * pipeline * data; }
};

/// Splits in ascending order of their GPUs; with as many GPUs the one with less tensor and pipeline
/// parallelism comes first.
std::vector<Split> splits(const Experiment& experiment) {
  std::vector<Split> list;
  for (std::int64_t tensor = 1; tensor <= experiment.cluster.gpus_per_node; tensor *= 2) {
    for (std::int64_t pipeline = 1; pipeline <= experiment.model.num_layers; ++pipeline) {
      if (experiment.model.num_layers % pipeline != 0) continue;
      for (std::int64_t data = 1; data <= kMostDataParallel; data *= 2)
        list.push_back({tensor, pipeline, data});
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Split& a, const Split& b) {
    return std::pair(a.gpus(), a.tensor * a.pipeline) < std::pair(b.gpus(), b.tensor * b.pipeline);
  });
  return list;
}

report::FleetAnswer fewest_gpus(const MemoryRequest& request, const Experiment& experiment) {
  const plan::ParallelPlan& plan = experiment.plan;
  for (const Split& split : splits(experiment)) {
    const std::int64_t unit = split.data * plan.micro_batch_size;
    const std::int64_t batch = std::max<std::int64_t>(1, plan.global_batch_size / unit) * unit;
    const Overrides overrides = {assignment("gpus", split.gpus()),
                                 assignment("plan.tensor_parallel", split.tensor),
                                 assignment("plan.pipeline_parallel", split.pipeline),
                                 "plan.virtual_pipeline=1",
                                 "plan.schedule=1f1b",
                                 assignment("plan.data_parallel", split.data),
                                 assignment("plan.global_batch_size", batch)};
    if (!fits(request.subject, joined(request.overrides, overrides)).value_or(false)) continue;
    const std::string note = "(TP" + std::to_string(split.tensor) + " PP" + std::to_string(split.pipeline) +
                             " DP" + std::to_string(split.data) + ", the rest of the plan as it is)";
    return {"Fewest GPUs that it fits on", split.gpus(), note};
  }
  return {"Fewest GPUs that it fits on", 0,
          "no split with at most " + std::to_string(kMostDataParallel) + " data-parallel ranks fits"};
}

/// The simulated rank that stands for the wanted one: ranks of a stage have the same memory.
std::size_t index_of(const MemoryRequest& request, const Experiment& experiment,
                     const report::Summary& summary) {
  const std::vector<report::RankSummary>& ranks = summary.ranks;
  if (!request.rank) return static_cast<std::size_t>(&report::fullest_rank(summary) - ranks.data());
  const std::int64_t stage = plan::coordinates_of(experiment.plan, *request.rank).stage;
  const auto found =
      std::find_if(ranks.begin(), ranks.end(), [&](const auto& rank) { return rank.stage == stage; });
  return static_cast<std::size_t>(found - ranks.begin());
}

void check_rank(const MemoryRequest& request, const Experiment& experiment) {
  if (!request.rank || *request.rank < experiment.plan.gpus) return;
  throw InputError("trainsim: error: --rank " + std::to_string(*request.rank) + ": there are ranks 0 to " +
                   std::to_string(experiment.plan.gpus - 1));
}

}  // namespace

std::vector<report::MemoryChange> memory_changes(const std::string& subject, const Overrides& overrides,
                                                 const Experiment& experiment, std::size_t most) {
  std::vector<Candidate> single;
  for (const Overrides& change : candidates(experiment.plan)) {
    if (auto candidate = candidate_of(subject, overrides, change)) single.push_back(std::move(*candidate));
  }
  sort_by_memory(single);
  std::vector<Candidate> list = single;
  for (int size = 1; size < kMostTogether && !any_fits(list); ++size) {
    std::vector<Candidate> larger = combined(subject, overrides, list, single);
    if (larger.empty()) break;
    list = std::move(larger);
  }
  if (any_fits(list)) std::erase_if(list, [](const Candidate& each) { return each.headroom() < 0; });
  if (list.size() > kMostTimed) list.resize(kMostTimed);
  const Seconds base = ideal_step_time(experiment);
  std::vector<report::MemoryChange> changes(list.size());
  std::transform(list.begin(), list.end(), changes.begin(),
                 [base](const Candidate& candidate) { return change_of(candidate, base); });
  if (any_fits(list)) {
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return a.relative_step_time < b.relative_step_time;
    });
  }
  if (changes.size() > most) changes.resize(most);
  return changes;
}

report::MemoryReport describe_memory(const MemoryRequest& request, const engine::Progress& progress) {
  Experiment experiment = config::load(request.subject, request.overrides);
  check_rank(request, experiment);
  const std::string chosen = choose_recomputation(experiment);
  report::MemoryReport report;
  report.summary = simulate(experiment, true, progress, Reservation::kAll);
  report.rank = index_of(request, experiment, report.summary);
  report.rank_id = request.rank.value_or(report.summary.ranks[report.rank].rank);
  if (report.summary.verdict != report::Verdict::kFits)
    report.summary.changes = memory_changes(request.subject, request.overrides, experiment, kMostChanges);
  if (!chosen.empty()) report.summary.notes.push_back(chosen);
  if (!request.largest.empty()) report.answers.push_back(largest_of(request, experiment));
  if (request.fewest_gpus) report.answers.push_back(fewest_gpus(request, experiment));
  return report;
}

}  // namespace trainsim::cli
