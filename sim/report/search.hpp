// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// What a search makes small.
enum class Objective {
  /// The step time.
  kStepTime,
  /// GPUs times step time, in money if there is a price.
  kCost,
  /// The number of GPUs, and then the step time.
  kGpus,
};
/// "step_time", "cost", "gpus".
const char* to_string(Objective objective);

/// A plan that was simulated, with what a search or a comparison of neighbours shows of it.
struct PlanResult {
  plan::ParallelPlan plan;
  /// Overrides of the configuration, as for --set, that make it; none for the configuration itself.
  std::vector<std::string> overrides;
  Seconds step_time = 0;
  double tokens_per_second = 0;
  double mfu = 0;
  double bubble_ratio = 0;
  double scaling_efficiency = 0;
  Bytes peak_memory = 0;
  Bytes peak_reserved = 0;
  /// Capacity less reserve less peak; negative when it does not fit.
  Bytes headroom = 0;
  Verdict verdict = Verdict::kFits;
  /// Mean over ranks, by program::Cause; adds up to step_time.
  std::array<Seconds, program::kCauses> breakdown{};
  /// Step time, or what else is made small, against that of the plan it is compared with.
  double relative = 1;
  /// Why it is slower or faster than that plan.
  std::string why;
};

/// The numbers of a run that a PlanResult keeps; overrides and comparison are left empty.
PlanResult plan_result(const Summary& summary);

/// GPU-hours that one step takes.
double gpu_hours(std::int64_t gpus, Seconds step_time);
double gpu_hours(const PlanResult& result);

/// A legal plan that was looked at closely, fits and keeps the limits, and is not among the best.
struct JudgedPlan {
  plan::ParallelPlan plan;
  /// Simulated in full; else without contention, a lower bound.
  Seconds step_time = 0;
  Bytes peak_memory = 0;
  bool simulated = false;
};

/// Candidates that were left out, and why.
struct LeftOut {
  std::string reason;
  std::int64_t count = 0;
};

/// Result of a search.
struct SearchReport {
  std::string name;
  std::string model;
  std::string cluster;
  std::int64_t global_batch_size = 0;
  Objective objective = Objective::kStepTime;
  /// Dollars per GPU-hour.
  std::optional<double> price;
  std::vector<std::string> limits;
  /// False when it was interrupted: better plans may exist.
  bool complete = true;
  /// Combinations of settings, and those of them that are legal.
  std::int64_t considered = 0;
  std::int64_t legal = 0;
  /// By rule that forbids them, most first.
  std::vector<LeftOut> illegal;
  /// Legal ones that are not among the best, by the step that found it out.
  std::vector<LeftOut> rejected;
  /// Plans that ran without contention, and those that the full simulation confirmed.
  std::int64_t ranked = 0;
  std::int64_t confirmed = 0;
  /// Best first.
  std::vector<PlanResult> plans;
  /// Those simulated in full first, the fastest first.
  std::vector<JudgedPlan> judged;
  /// The configuration's own plan, compared with the best.
  std::optional<PlanResult> own;
  /// False when that breaks one of the limits.
  bool own_keeps_limits = true;
};

/// Compares all plans of a report, and the configuration's own, with the best: `relative` and `why`.
void compare_with_best(SearchReport& report);

/// The report for people; JSON that ends in a newline; one line per plan.
std::string to_text(const SearchReport& report);
std::string to_json(const SearchReport& report);
std::string to_csv(const SearchReport& report);

/// A plan one step away from the configuration's.
struct NeighbourResult {
  /// The setting that moved: "tensor_parallel 8 -> 4, pipeline_parallel 8 -> 16".
  std::string change;
  PlanResult result;
};

/// Result of simulating a plan's neighbours.
struct NeighbourReport {
  std::string name;
  PlanResult own;
  /// Those that fit, fastest first, and then those that do not.
  std::vector<NeighbourResult> neighbours;
  /// Moves that no legal plan comes from.
  std::int64_t illegal = 0;
};

std::string to_text(const NeighbourReport& report);
std::string to_json(const NeighbourReport& report);
std::string to_csv(const NeighbourReport& report);
/// What the planner left on the table: "yours is 6.3 % slower than TP4 PP8 VPP2 …, which needs 4.1 GiB less".
std::string verdict_on(const NeighbourReport& report);

/// The causes of a breakdown that moved most, by more than a thousandth of `step_time`: "bubble 0.42 s more,
/// tensor communication 0.18 s less"; empty when none did.
std::string moved_causes(const std::array<Seconds, program::kCauses>& from,
                         const std::array<Seconds, program::kCauses>& to, Seconds step_time);
/// Why one plan takes longer or shorter than another: the causes that moved most, "bubble 0.42 s more, tensor
/// communication 0.18 s less". Plans of different numbers of GPUs: these and both step times.
std::string explain_difference(const PlanResult& from, const PlanResult& to);

/// "TP8+SP PP8 VPP3 DP16, micro-batch 1, interleaved, recompute selective, sharding zero1".
std::string plan_label(const plan::ParallelPlan& plan);

}  // namespace trainsim::report
