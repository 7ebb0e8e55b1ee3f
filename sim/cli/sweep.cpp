// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/sweep.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/cli/interruption.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/sweep_batch.hpp"
#include "sim/cli/worker_pool.hpp"

namespace trainsim::cli {

SweepOutcome run_sweep(
    const SweepTask& task,
    const std::function<void(sweep::Row row, const std::function<void()>& clear_progress)>& receive) {
  const Interruption interruption;
  SweepOutcome outcome;
  ProgressBar bar(task.show_progress);
  const std::vector<PointBatch> batches = batches_of(task.whole, task.points, task.workers);
  // Processors that are left when there are few batches.
  const std::size_t ramp_workers =
      std::max<std::size_t>(1, task.workers / std::max<std::size_t>(1, batches.size()));
  std::size_t finished = 0;
  // Results by point that wait for one before them.
  std::map<std::size_t, PointResult> waiting;
  const auto hand_over = [&] {
    while (!waiting.empty() && waiting.begin()->first == task.points[outcome.done]) {
      const auto next = waiting.begin();
      const sweep::Identity identity{next->first + 1, task.whole.size(), task.fingerprint};
      receive(row_of(task.whole, next->second, identity), [&bar] { bar.clear(); });
      waiting.erase(next);
      ++outcome.done;
    }
  };
  const auto share = [&] { return static_cast<double>(finished) / static_cast<double>(task.points.size()); };
  run_forked(
      batches.size(), task.workers,
      [&](std::size_t index) { return simulate_batch(task.base, task.whole, batches[index], ramp_workers); },
      [&](std::size_t index, const WorkResult& result) {
        const PointBatch& points = batches[index];
        finished += points.size();
        if (!result.done) outcome.failed += points.size();
        const std::vector<PointResult> results =
            result.done ? results_of_batch(result.text)
                        : std::vector<PointResult>(
                              points.size(), {{}, "failed, and not because of its values: " + result.text});
        for (std::size_t i = 0; i < points.size(); ++i) waiting[points[i]] = results.at(i);
        hand_over();
      },
      [&] {
        bar.update(share());
        if (Interruption::signal() == 0) return Pace::kGoOn;
        return waiting.empty() ? Pace::kStop : Pace::kFinishRunning;
      });
  bar.clear();
  if (outcome.done < task.points.size()) outcome.signal = Interruption::signal();
  return outcome;
}

}  // namespace trainsim::cli
