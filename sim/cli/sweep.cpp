// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/sweep.hpp"

#include <map>
#include <utility>

#include "sim/cli/interruption.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/worker_pool.hpp"

namespace trainsim::cli {

SweepOutcome run_sweep(
    const SweepTask& task,
    const std::function<void(sweep::Row row, const std::function<void()>& clear_progress)>& receive) {
  const Interruption interruption;
  SweepOutcome outcome;
  ProgressBar bar(task.show_progress);
  std::size_t finished = 0;
  // Results that wait for one before them.
  std::map<std::size_t, PointResult> waiting;
  const auto hand_over = [&] {
    for (auto next = waiting.find(outcome.done); next != waiting.end(); next = waiting.find(outcome.done)) {
      const sweep::Identity identity{task.points[next->first] + 1, task.whole.size(), task.fingerprint};
      receive(row_of(task.whole, next->second, identity), [&bar] { bar.clear(); });
      waiting.erase(next);
      ++outcome.done;
    }
  };
  const auto share = [&] { return static_cast<double>(finished) / static_cast<double>(task.points.size()); };
  run_forked(
      task.points.size(), task.workers,
      [&](std::size_t index) { return simulate_point(task.base, task.whole, task.points[index]); },
      [&](std::size_t index, const WorkResult& result) {
        ++finished;
        if (!result.done) ++outcome.failed;
        waiting[index] = result.done
                             ? result_of_point(result.text)
                             : PointResult{{}, "failed, and not because of its values: " + result.text};
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
