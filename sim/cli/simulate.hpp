// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/config/experiment.hpp"
#include "sim/engine/executor.hpp"
#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// Lowers an experiment to a job: schedule, programs, communicators, routes, folding.
program::Job build_job(const config::Experiment& experiment, bool fold);

/// Runs a job with the executor that the experiment asks for (SimGrid for network: flow). Spans are recorded
/// on request.
program::Timeline run_job(const config::Experiment& experiment, const program::Job& job,
                          const engine::Progress& progress, bool record_spans = false);

/// Bytes of a GPU that tensors may take.
Bytes available_memory(const config::Experiment& experiment);

/// Memory of the fullest rank without simulating its time, and whether that and what is offloaded fits, as
/// simulate() would judge it.
struct MemoryEstimate {
  Bytes peak = 0;
  Bytes reserved = 0;
  report::Verdict verdict = report::Verdict::kFits;
  bool fits() const { return verdict != report::Verdict::kDoesNotFit; }
};
MemoryEstimate estimate_memory(const config::Experiment& experiment);

/// Step time without contention between transfers.
Seconds ideal_step_time(const config::Experiment& experiment);

/// For which ranks the caching allocator is replayed, which can take as long as the simulation.
enum class ReplayAllocator { kForFullestRank, kForAll };

/// A job and how it ran, span by span.
struct Recording {
  program::Job job;
  program::Timeline timeline;
};

/// The whole road from an experiment to its summary. What was made on the way is left in `recording`, if
/// there is one.
report::Summary simulate(const config::Experiment& experiment, bool fold, const engine::Progress& progress,
                         ReplayAllocator replay = ReplayAllocator::kForFullestRank,
                         Recording* recording = nullptr);

/// The same without contention between transfers, as often as wanted in one process: SimGrid can run only
/// once.
report::Summary simulate_without_contention(const config::Experiment& experiment);

}  // namespace trainsim::cli
