// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "sim/folding/world.hpp"
#include "sim/program/job.hpp"

namespace trainsim::folding {

/// How a job is put together.
struct FoldOptions {
  /// Simulate one rank per class of identical ranks instead of all.
  bool fold = true;
  /// Leave out all communication times: collectives and messages still synchronise, but take no time.
  bool free_communication = false;
  /// Build the world from a sample of the replicas where that is exact; false builds all of it, for checking.
  bool sample = true;
  /// How tensor-parallel ranks talk to each other.
  program::Pattern tensor_pattern = program::Pattern::kRings;
  /// Keep every flow apart, for an executor that runs rings step by step. REQUIRES: fold is false.
  bool separate_flows = false;
};

/// Binds programs (one per stage) to the ranks of a plan on a cluster, folded along the symmetries that
/// exist.
program::Job build_job(const plan::ParallelPlan& plan, const hardware::ClusterSpec& cluster, bool tied,
                       std::vector<program::Program> programs, const FoldOptions& options);

}  // namespace trainsim::folding
