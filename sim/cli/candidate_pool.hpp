// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cli/plan_base.hpp"
#include "sim/cli/variant.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/search.hpp"
#include "sim/search/candidate.hpp"
#include "sim/search/space.hpp"

namespace trainsim::cli {

/// A legal plan that a search may find.
struct PooledPlan {
  /// Which of the pool's bases it changes: one for each number of GPUs.
  std::size_t base = 0;
  search::Candidate candidate;
};

/// Plans that differ only in micro-batch and recomputation: first index, and that after the last.
struct PlanBlock {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// All legal plans of a search, and how each is made from the configuration.
class CandidatePool {
 public:
  /// Plans of a space with each of some numbers of GPUs; with `take_own_plan` the configuration's own too,
  /// even if the space leaves it out. Counts what is illegal into `report`.
  CandidatePool(PlanBase own, const search::Space& space, const std::vector<std::int64_t>& gpus,
                bool take_own_plan, report::SearchReport& report);

  const PlanBase& own() const { return own_; }
  const std::vector<PooledPlan>& plans() const { return plans_; }
  std::vector<PlanBlock> blocks() const;
  /// Says how many layers a plan with as few recomputed layers as fit recomputes.
  void resolve_layers(std::size_t index, std::int64_t layers);

  std::int64_t gpus(const PooledPlan& plan) const { return bases_[plan.base].plan.gpus; }
  /// Bytes of a GPU that tensors may take.
  Bytes available(const PooledPlan& plan) const;
  plan::ParallelPlan resolved(const PooledPlan& plan) const;
  /// Overrides of the configuration that make a plan.
  Overrides overrides(const PooledPlan& plan) const;
  /// The configuration with these. Throws InputError if it can't be read so.
  config::Experiment experiment(const PooledPlan& plan) const;

 private:
  void take_own(report::SearchReport& report);

  PlanBase own_;
  std::vector<search::Base> bases_;
  std::vector<PooledPlan> plans_;
};

}  // namespace trainsim::cli
