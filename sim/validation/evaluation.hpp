// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sim/validation/row.hpp"
#include "sim/validation/statistics.hpp"

namespace trainsim::validation {

/// What a comparison is good for.
enum class Role {
  /// The configuration is complete and nothing was fitted to it.
  kTested,
  /// The source leaves something open that had to be assumed.
  kAssumed,
  /// A constant was fitted to it.
  kFitted,
};

std::string to_string(Role role);

enum class Unit { kSeconds, kBytes };
/// "s" or "B".
const char* to_string(Unit unit);

/// One measured figure beside the simulated one.
struct Comparison {
  std::string id;
  std::string family;
  /// "step", "layer forward", "layer backward", "multiply", …
  std::string quantity;
  Role role = Role::kTested;
  Unit unit = Unit::kSeconds;
  Pair values;
  std::string group;
  double sequences = 1;
  std::vector<std::string> assumptions;
};

/// Whether a run fitted into memory, beside whether it does when simulated.
struct FitComparison {
  std::string id;
  std::string family;
  bool measured = true;
  bool simulated = true;
};

/// A row that was not simulated.
struct Skipped {
  std::string id;
  std::string family;
  std::string reason;
};

/// Errors of one family's comparisons of one quantity and role.
struct FamilyErrors {
  std::string family;
  std::string quantity;
  Role role = Role::kTested;
  ErrorStatistics errors;
  /// Comparisons behind it, largest absolute error first.
  std::vector<const Comparison*> worst;
};

/// How often a family's runs fit into memory when they did, and do not when they did not.
struct FamilyFits {
  std::string family;
  std::size_t fitted = 0;
  std::size_t fitted_right = 0;
  std::size_t ran_out = 0;
  std::size_t ran_out_right = 0;
  /// Those that come out wrong.
  std::vector<std::string> wrong;
};

/// Plans of one model on the same GPUs with the same batch: are they in the right order?
struct PlanGroup {
  std::string family;
  std::string label;
  std::size_t rows = 0;
  double kendall_tau = 0;
  double spearman_rho = 0;
  double regret = 0;
};

/// Everything that `trainsim validate` found out.
struct Evaluation {
  std::vector<Comparison> comparisons;
  std::vector<FitComparison> fits;
  std::vector<Skipped> skipped;
  /// Malformed rows and files, as text with positions, and how many there are by family.
  std::vector<std::string> problems;
  std::map<std::string, int> malformed;
  Seconds wall_time = 0;
};

/// Statistics by family, quantity and role, in the order of first appearance. Pointers are into `evaluation`.
std::vector<FamilyErrors> family_errors(const Evaluation& evaluation);

/// Verdicts by family, in alphabetical order.
std::vector<FamilyFits> family_fits(const Evaluation& evaluation);

/// Groups with at least three step times, by time per sequence.
std::vector<PlanGroup> plan_groups(const Evaluation& evaluation);

/// For tables: the groups, except that the groups of a family with more than ten are replaced by one with
/// their means (all their rows, labelled "mean of N groups").
std::vector<PlanGroup> condensed(const std::vector<PlanGroup>& groups);

/// Reasons for which rows of a family were skipped, with their numbers, most frequent first.
std::vector<std::pair<std::string, int>> skip_reasons(const Evaluation& evaluation,
                                                      const std::string& family);

/// All families of an evaluation, those without a single comparison included, in order of appearance.
std::vector<std::string> families(const Evaluation& evaluation);

}  // namespace trainsim::validation
