// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace trainsim::cli {

/// What a forked worker left behind.
struct WorkResult {
  /// Whether the worker ended as it should.
  bool done = false;
  /// Its result, or why there is none.
  std::string text;
};

/// Whether a pool of workers goes on.
enum class Pace {
  kGoOn,
  /// Nothing new is begun; what runs is waited for.
  kFinishRunning,
  /// What runs is killed.
  kStop,
};

/// Runs `work(0)`, …, `work(tasks - 1)`, each in a child process of its own (SimGrid can run only once in a
/// process), at most `workers` at a time. `work` returns its result as text; what it throws, or a crash,
/// becomes a result that is not done. `receive` is called in this process as results come in, in any order.
/// `pace`, if there is one, is asked several times a second. Children are killed when `receive` or `pace`
/// throws. Throws std::runtime_error when a process can't be started.
void run_forked(std::size_t tasks, std::size_t workers, const std::function<std::string(std::size_t)>& work,
                const std::function<void(std::size_t, const WorkResult&)>& receive,
                const std::function<Pace()>& pace = {});

/// Processors that this process may use, at least 1.
std::size_t available_processors();

}  // namespace trainsim::cli
