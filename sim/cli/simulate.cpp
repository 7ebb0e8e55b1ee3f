// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/simulate.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <spdlog/spdlog.h>

#include "sim/engine/group_traffic.hpp"
#include "sim/engine/traffic.hpp"
#include "sim/folding/fold.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/lowering/state.hpp"
#include "sim/memory/ledger.hpp"
#include "sim/memory/reservation.hpp"
#include "sim/schedule/schedule.hpp"

namespace trainsim::cli {

namespace {

/// Simulated ranks from which a run takes tens of seconds.
constexpr std::size_t kManyRanks = 2000;

constexpr std::array<const char*, 4> kNetworkNames = {"flow", "ideal", "free", "step"};

std::vector<program::Program> build_programs(const config::Experiment& experiment) {
  const schedule::Schedule schedule = schedule::build(experiment.plan);
  if (const Problems problems = schedule::check(schedule); !problems.empty()) {
    throw std::logic_error("a built-in schedule is wrong: " + problems.front().message);
  }
  return lowering::lower(experiment.model, experiment.plan, experiment.cluster, schedule);
}

memory::Reservation reserve(const config::Experiment& experiment, const program::Program& program) {
  const bool expandable = experiment.plan.expandable_segments;
  return memory::reserve(program, expandable ? memory::Segments::kExpandable : memory::Segments::kFixed,
                         available_memory(experiment));
}

std::size_t fullest(const std::vector<memory::Profile>& profiles) {
  const auto found = std::max_element(profiles.begin(), profiles.end(),
                                      [](const auto& a, const auto& b) { return a.peak < b.peak; });
  return static_cast<std::size_t>(found - profiles.begin());
}

std::vector<memory::Profile> profiles_of(const std::vector<program::Program>& programs) {
  std::vector<memory::Profile> profiles(programs.size());
  std::transform(programs.begin(), programs.end(), profiles.begin(), memory::replay);
  return profiles;
}

/// The same with as many micro-batches as it takes to fill the pipeline and go on for a while: more of them
/// change nothing, except with GPipe, which keeps all.
config::Experiment with_few_micro_batches(config::Experiment experiment) {
  plan::ParallelPlan& plan = experiment.plan;
  if (plan.schedule == plan::ScheduleKind::kGpipe) return experiment;
  const std::int64_t enough = plan.pipeline_parallel * (plan.virtual_pipeline + 2);
  const std::int64_t count = std::min(plan.micro_batches(), enough);
  plan.global_batch_size = count * plan.micro_batch_size * plan.data_parallel;
  return experiment;
}

/// What the allocator holds for each program, or for that with the highest peak only.
std::vector<std::optional<memory::Reservation>> reservations(const config::Experiment& experiment,
                                                             const program::Job& job,
                                                             const std::vector<memory::Profile>& profiles,
                                                             ReplayAllocator replay) {
  std::vector<std::optional<memory::Reservation>> reserved(profiles.size());
  const std::size_t most = fullest(profiles);
  for (std::size_t p = 0; p < profiles.size(); ++p) {
    if (replay == ReplayAllocator::kForAll || p == most) reserved[p] = reserve(experiment, job.programs[p]);
  }
  return reserved;
}

/// The same with flows instead of single messages for the steps of a ring, which the ideal executor does not
/// know.
config::Experiment without_steps(config::Experiment experiment) {
  if (experiment.network == config::NetworkMode::kStep) experiment.network = config::NetworkMode::kIdeal;
  return experiment;
}

/// How a timeline came about.
struct Circumstances {
  std::optional<Seconds> uncontended_step_time;
  ReplayAllocator replay = ReplayAllocator::kForFullestRank;
  std::chrono::steady_clock::time_point begin;
};

report::Summary summarize(const config::Experiment& experiment, const program::Job& job,
                          const program::Timeline& timeline, const Circumstances& circumstances) {
  const std::vector<memory::Profile> profiles = profiles_of(job.programs);
  const std::vector<std::optional<memory::Reservation>> reserved =
      reservations(experiment, job, profiles, circumstances.replay);
  program::Traffic traffic = engine::count_traffic(job);
  traffic.groups = engine::group_traffic(job, timeline);
  report::Run run{
      experiment.name,
      experiment.description,
      experiment.model,
      experiment.cluster,
      experiment.plan,
      job,
      timeline,
      profiles,
      reserved,
      std::move(traffic),
      circumstances.uncontended_step_time,
      kNetworkNames[static_cast<std::size_t>(experiment.network)],
      lowering::peak_flops(experiment.cluster.gpu, experiment.plan),
      lowering::single_gpu_time(experiment.model, experiment.plan, experiment.cluster.gpu),
      schedule::bubble_ratio_theory(experiment.plan),
      experiment.warnings,
      lowering::host_memory_of_fullest_node(experiment.model, experiment.plan, experiment.cluster),
      0};
  run.wall_time =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - circumstances.begin).count();
  return report::summarize(run);
}

}  // namespace

Bytes available_memory(const config::Experiment& experiment) {
  return experiment.cluster.gpu.memory - experiment.plan.memory_reserve;
}

MemoryEstimate estimate_memory(const config::Experiment& experiment) {
  const std::vector<program::Program> programs = build_programs(with_few_micro_batches(experiment));
  const std::vector<memory::Profile> profiles = profiles_of(programs);
  const std::size_t most = fullest(profiles);
  const Bytes peak = profiles[most].peak;
  const Bytes reserved = reserve(experiment, programs[most]).peak_reserved;
  const Bytes host =
      lowering::host_memory_of_fullest_node(experiment.model, experiment.plan, experiment.cluster);
  const bool host_holds = host == 0 || host <= experiment.cluster.host->memory;
  return {peak, reserved,
          host_holds ? report::judge_memory(peak, reserved, available_memory(experiment))
                     : report::Verdict::kDoesNotFit};
}

program::Job build_job(const config::Experiment& experiment, bool fold) {
  std::vector<program::Program> programs = build_programs(experiment);
  const bool tied = experiment.model.tie_word_embeddings;
  const bool steps = experiment.network == config::NetworkMode::kStep;
  folding::FoldOptions options;
  options.fold = fold && !steps;
  options.free_communication = experiment.network == config::NetworkMode::kFree;
  options.separate_flows = steps;
  return folding::build_job(experiment.plan, experiment.cluster, tied, std::move(programs), options);
}

program::Timeline run_job(const config::Experiment& experiment, const program::Job& job,
                          const engine::Progress& progress, bool record_spans) {
  engine::ExecutorOptions options{progress};
  options.record_spans = record_spans;
  options.ring_steps = experiment.network == config::NetworkMode::kStep;
  const std::unique_ptr<engine::Executor> executor = experiment.network == config::NetworkMode::kIdeal
                                                         ? engine::make_ideal_executor(options)
                                                         : engine::make_simgrid_executor(options);
  return executor->run(job);
}

Seconds ideal_step_time(const config::Experiment& experiment) {
  return engine::make_ideal_executor({})->run(build_job(without_steps(experiment), true)).step_time;
}

report::Summary simulate(const config::Experiment& experiment, bool fold, const engine::Progress& progress,
                         ReplayAllocator replay, Recording* recording) {
  const auto begin = std::chrono::steady_clock::now();
  program::Job job = build_job(experiment, fold);
  if (fold && job.ranks.size() > kManyRanks) {
    spdlog::warn(
        "only {} of {} ranks are alike enough to be left out (a slow GPU or an uneven network sets them "
        "apart); the run will take a while",
        job.world_size - static_cast<std::int64_t>(job.ranks.size()), job.world_size);
  }
  std::optional<Seconds> uncontended;
  if (experiment.network == config::NetworkMode::kFlow) {
    uncontended = engine::make_ideal_executor({})->run(job).step_time;
  }
  program::Timeline timeline = run_job(experiment, job, progress, recording != nullptr);
  report::Summary summary = summarize(experiment, job, timeline, {uncontended, replay, begin});
  if (recording != nullptr) *recording = {std::move(job), std::move(timeline)};
  return summary;
}

report::Summary simulate_without_contention(const config::Experiment& experiment) {
  const auto begin = std::chrono::steady_clock::now();
  const program::Job job = build_job(without_steps(experiment), true);
  const program::Timeline timeline = engine::make_ideal_executor({})->run(job);
  return summarize(experiment, job, timeline, {std::nullopt, ReplayAllocator::kForFullestRank, begin});
}

}  // namespace trainsim::cli
