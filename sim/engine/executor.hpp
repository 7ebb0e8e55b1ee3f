// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>

#include "sim/program/job.hpp"
#include "sim/program/timeline.hpp"

namespace trainsim::engine {

/// Told from time to time which share of the instructions, in [0, 1], has run.
using Progress = std::function<void(double share)>;

/// How a run is done.
struct ExecutorOptions {
  /// May be empty.
  Progress progress;
  /// Time a collective in closed form when nothing else ever crosses its links. Exact, and much faster; false
  /// sends every flow through the network model, for checking.
  bool closed_form_collectives = true;
  /// Send every step of a ring as a message of its own, which waits for the step before, instead of one flow
  /// for all; for checking. REQUIRES: a job whose flows were kept apart. Other algorithms stay flows.
  bool ring_steps = false;
  /// Record what every stream did when (program::Span), for traces and pictures.
  bool record_spans = false;
};

/// Runs the programs of a job and reports what every rank did.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Throws std::logic_error, naming the ranks that wait and for what, when the programs can't run to their
  /// end.
  virtual program::Timeline run(const program::Job& job) = 0;
};

/// Every transfer takes the time it would take alone on its path: no contention. A lower bound of every other
/// executor, and fast.
std::unique_ptr<Executor> make_ideal_executor(ExecutorOptions options = {});

/// SimGrid: one host per rank, one actor per stream, flows share links by max-min fairness. A process can run
/// this executor once, because SimGrid keeps its clock and its hosts.
std::unique_ptr<Executor> make_simgrid_executor(ExecutorOptions options = {});

}  // namespace trainsim::engine
