// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/evaluation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

namespace trainsim::validation {

namespace {

/// Plans that make a group worth ranking.
constexpr std::size_t kFewestPlans = 3;
/// Groups of a family that tables list one by one.
constexpr std::size_t kMostGroups = 10;

/// The mean over some groups of one family.
PlanGroup mean_of(const std::vector<PlanGroup>& groups) {
  PlanGroup mean{groups.front().family, "mean of " + std::to_string(groups.size()) + " groups", 0, 0, 0, 0};
  const auto n = static_cast<double>(groups.size());
  for (const PlanGroup& group : groups) {
    mean.rows += group.rows;
    mean.kendall_tau += group.kendall_tau / n;
    mean.spearman_rho += group.spearman_rho / n;
    mean.regret += group.regret / n;
  }
  return mean;
}

}  // namespace

std::string to_string(Role role) {
  static const std::array<const char*, 3> names = {"tested", "assumed", "fitted"};
  return names.at(static_cast<std::size_t>(role));
}

const char* to_string(Unit unit) {
  return unit == Unit::kSeconds ? "s" : "B";
}

std::vector<FamilyErrors> family_errors(const Evaluation& evaluation) {
  using Key = std::tuple<std::string, std::string, Role>;
  std::vector<Key> order;
  std::map<Key, std::vector<const Comparison*>> parts;
  for (const Comparison& comparison : evaluation.comparisons) {
    const Key key = {comparison.family, comparison.quantity, comparison.role};
    if (!parts.contains(key)) order.push_back(key);
    parts[key].push_back(&comparison);
  }
  std::sort(order.begin(), order.end());
  std::vector<FamilyErrors> result;
  for (const Key& key : order) {
    std::vector<const Comparison*>& rows = parts[key];
    std::vector<Pair> pairs(rows.size());
    std::transform(rows.begin(), rows.end(), pairs.begin(),
                   [](const Comparison* row) { return row->values; });
    const ErrorStatistics errors = error_statistics(pairs);
    std::stable_sort(rows.begin(), rows.end(), [](const Comparison* a, const Comparison* b) {
      return std::abs(a->values.error()) > std::abs(b->values.error());
    });
    result.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), errors, rows});
  }
  return result;
}

std::vector<FamilyFits> family_fits(const Evaluation& evaluation) {
  std::map<std::string, FamilyFits> by_family;
  for (const FitComparison& row : evaluation.fits) {
    FamilyFits& family = by_family[row.family];
    family.family = row.family;
    const bool right = row.measured == row.simulated;
    ++(row.measured ? family.fitted : family.ran_out);
    if (right) ++(row.measured ? family.fitted_right : family.ran_out_right);
    if (!right) family.wrong.push_back(row.id);
  }
  std::vector<FamilyFits> result(by_family.size());
  std::transform(by_family.begin(), by_family.end(), result.begin(),
                 [](const auto& entry) { return entry.second; });
  return result;
}

std::vector<PlanGroup> plan_groups(const Evaluation& evaluation) {
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, std::vector<Pair>> groups;
  for (const Comparison& row : evaluation.comparisons) {
    if (row.group.empty() || row.quantity != "step" || row.role == Role::kFitted) continue;
    const auto key = std::pair(row.family, row.group);
    if (!groups.contains(key)) order.push_back(key);
    groups[key].push_back({row.values.measured / row.sequences, row.values.simulated / row.sequences});
  }
  std::vector<PlanGroup> result;
  for (const auto& key : order) {
    const std::vector<Pair>& pairs = groups[key];
    if (pairs.size() < kFewestPlans) continue;
    result.push_back(
        {key.first, key.second, pairs.size(), kendall_tau(pairs), spearman_rho(pairs), regret(pairs)});
  }
  return result;
}

std::vector<PlanGroup> condensed(const std::vector<PlanGroup>& groups) {
  std::map<std::string, std::vector<PlanGroup>> by_family;
  for (const PlanGroup& group : groups) by_family[group.family].push_back(group);
  std::vector<PlanGroup> result;
  for (const auto& [family, members] : by_family) {
    if (members.size() > kMostGroups) {
      result.push_back(mean_of(members));
    } else {
      result.insert(result.end(), members.begin(), members.end());
    }
  }
  return result;
}

std::vector<std::pair<std::string, int>> skip_reasons(const Evaluation& evaluation,
                                                      const std::string& family) {
  std::map<std::string, int> counts;
  for (const Skipped& row : evaluation.skipped) {
    if (row.family == family) ++counts[row.reason];
  }
  std::vector<std::pair<std::string, int>> result(counts.begin(), counts.end());
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return result;
}

std::vector<std::string> families(const Evaluation& evaluation) {
  std::set<std::string> names;
  for (const Comparison& row : evaluation.comparisons) names.insert(row.family);
  for (const Skipped& row : evaluation.skipped) names.insert(row.family);
  for (const auto& [family, count] : evaluation.malformed) names.insert(family);
  return {names.begin(), names.end()};
}

}  // namespace trainsim::validation
