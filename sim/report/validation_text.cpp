// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "sim/report/format.hpp"
#include "sim/report/validation.hpp"

namespace trainsim::report {

namespace {

using validation::Comparison;
using validation::Evaluation;
using validation::FamilyErrors;
using validation::PlanGroup;
using validation::Role;

constexpr std::size_t kNameWidth = 60;
constexpr std::size_t kGroupWidth = 90;
constexpr std::size_t kNumberWidth = 10;
constexpr std::size_t kWorstRows = 3;
constexpr std::size_t kTextWidth = 110;

std::string signed_percent(double share) {
  return (share > 0 ? "+" : "") + percent(share);
}

std::string cells(std::initializer_list<std::string> texts) {
  std::string line;
  for (const std::string& text : texts) line += pad_left(text, kNumberWidth);
  return line;
}

std::string name_of(const FamilyErrors& family) {
  std::string name = family.family;
  if (family.quantity != "step") name += ", " + family.quantity;
  if (family.role == Role::kAssumed) name += " (settings assumed)";
  if (family.role == Role::kFitted) name += " (fitted to these)";
  return name;
}

std::string error_line(const FamilyErrors& family) {
  const validation::ErrorStatistics& errors = family.errors;
  return "  " + pad_right(name_of(family), kNameWidth) +
         cells({std::to_string(errors.rows), percent(errors.mean), percent(errors.median),
                signed_percent(errors.bias), signed_percent(errors.worst)}) +
         (errors.one_sign && errors.rows > 2 ? "  one sign" : "") + "\n";
}

std::string error_table(const Evaluation& evaluation) {
  std::string text = "Errors of simulated against measured times and memory\n  " + pad_right("", kNameWidth) +
                     cells({"rows", "mean", "median", "bias", "worst"}) + "\n";
  for (const FamilyErrors& family : family_errors(evaluation)) text += error_line(family);
  return text;
}

std::string value_text(validation::Unit unit, double value) {
  return unit == validation::Unit::kSeconds ? duration(value) : gib(static_cast<Bytes>(value));
}

std::string worst_line(const Comparison& row) {
  return "  " + pad_right(row.family + "  " + row.id, kTextWidth - 4 * kNumberWidth) +
         cells({value_text(row.unit, row.values.measured), value_text(row.unit, row.values.simulated),
                signed_percent(row.values.error())}) +
         "\n";
}

std::string worst_table(const Evaluation& evaluation) {
  std::string text = "\nFarthest off" + std::string(kTextWidth - 4 * kNumberWidth - 10, ' ') +
                     cells({"measured", "simulated", "error"}) + "\n";
  for (const FamilyErrors& family : family_errors(evaluation)) {
    if (family.role == Role::kFitted) continue;
    for (std::size_t i = 0; i < std::min(kWorstRows, family.worst.size()); ++i) {
      text += worst_line(*family.worst[i]);
    }
  }
  return text;
}

std::string group_table(const Evaluation& evaluation) {
  const std::vector<PlanGroup> groups = condensed(plan_groups(evaluation));
  if (groups.empty()) return "";
  std::string text = "\nPlans of one model in order of their speed\n  " + pad_right("", kGroupWidth) +
                     cells({"plans", "Kendall", "Spearman", "regret"}) + "\n";
  for (const PlanGroup& group : groups) {
    text += "  " + pad_right(group.family + ": " + group.label, kGroupWidth) +
            cells({std::to_string(group.rows), number(group.kendall_tau, 2), number(group.spearman_rho, 2),
                   percent(group.regret)}) +
            "\n";
  }
  return text;
}

std::string fits_table(const Evaluation& evaluation) {
  const std::vector<validation::FamilyFits> families = family_fits(evaluation);
  if (families.empty()) return "";
  std::string text =
      "\nDoes it fit? Runs that fitted and that ran out of memory, and how many come out so\n  " +
      pad_right("", kNameWidth) + cells({"fitted", "right", "ran out", "right"}) + "\n";
  for (const validation::FamilyFits& family : families) {
    text += "  " + pad_right(family.family, kNameWidth) +
            cells({std::to_string(family.fitted), std::to_string(family.fitted_right),
                   std::to_string(family.ran_out), std::to_string(family.ran_out_right)}) +
            (family.wrong.empty() ? "" : "  wrong: " + family.wrong.front()) + "\n";
  }
  return text;
}

std::string skipped_table(const Evaluation& evaluation) {
  std::string text;
  for (const std::string& family : families(evaluation)) {
    for (const auto& [reason, rows] : skip_reasons(evaluation, family)) {
      text += "  " + pad_right(family, 20) + pad_left(std::to_string(rows), 6) + "  " + reason + "\n";
    }
    const auto malformed = evaluation.malformed.find(family);
    if (malformed == evaluation.malformed.end()) continue;
    text += "  " + pad_right(family, 20) + pad_left(std::to_string(malformed->second), 6) +
            "  malformed; see the messages above\n";
  }
  return text.empty() ? "" : "\nRows that were not simulated\n" + text;
}

std::string total_line(const Evaluation& evaluation) {
  std::size_t malformed = 0;
  for (const auto& [family, count] : evaluation.malformed) malformed += static_cast<std::size_t>(count);
  return "\n" + std::to_string(evaluation.comparisons.size()) + " comparisons, " +
         std::to_string(evaluation.skipped.size()) + " rows skipped, " + std::to_string(malformed) +
         " malformed, in " + duration(evaluation.wall_time) +
         "\nError = simulated / measured - 1; mean and median of its size, bias with its sign. Kendall's "
         "tau-b and\n"
         "Spearman's rho compare orders (1 = the same); regret is how much longer the plan that is fastest\n"
         "simulated takes than the fastest one measured.\n";
}

}  // namespace

std::string to_text(const Evaluation& evaluation) {
  return error_table(evaluation) + worst_table(evaluation) + group_table(evaluation) +
         fits_table(evaluation) + skipped_table(evaluation) + total_line(evaluation);
}

}  // namespace trainsim::report
