// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "sim/report/format.hpp"
#include "sim/report/validation.hpp"

namespace trainsim::report {

namespace {

using validation::Evaluation;
using validation::FamilyErrors;
using validation::PlanGroup;
using validation::Role;

std::string row(std::initializer_list<std::string> cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string with_sign(double share) {
  return (share > 0 ? "+" : "") + percent(share);
}

std::string errors_part(const Evaluation& evaluation, Role role, const std::string& title) {
  std::string text;
  for (const FamilyErrors& family : family_errors(evaluation)) {
    if (family.role != role) continue;
    text += row({family.family, family.quantity, std::to_string(family.errors.rows),
                 percent(family.errors.mean), percent(family.errors.median), with_sign(family.errors.bias),
                 with_sign(family.errors.worst), "`" + family.worst.front()->id + "`"});
  }
  if (text.empty()) return "";
  return "### " + title + "\n\n" +
         row({"family", "what", "rows", "mean", "median", "bias", "worst", "worst row"}) +
         "|---|---|---|---|---|---|---|---|\n" + text + "\n";
}

std::string groups_part(const Evaluation& evaluation) {
  std::string text;
  for (const PlanGroup& group : condensed(plan_groups(evaluation))) {
    text += row({group.family, group.label, std::to_string(group.rows), number(group.kendall_tau, 2),
                 number(group.spearman_rho, 2), percent(group.regret)});
  }
  if (text.empty()) return "";
  return "### Plans of one model\n\n" + row({"family", "group", "plans", "Kendall", "Spearman", "regret"}) +
         "|---|---|---|---|---|---|\n" + text + "\n";
}

std::string fits_part(const Evaluation& evaluation) {
  std::string text;
  for (const validation::FamilyFits& family : family_fits(evaluation)) {
    std::string wrong;
    for (const std::string& id : family.wrong) wrong += (wrong.empty() ? "`" : ", `") + id + "`";
    text += row({family.family, std::to_string(family.fitted), std::to_string(family.fitted_right),
                 std::to_string(family.ran_out), std::to_string(family.ran_out_right), wrong});
  }
  if (text.empty()) return "";
  return "### Does it fit?\n\n" + row({"family", "fitted", "right", "ran out of memory", "right", "wrong"}) +
         "|---|---|---|---|---|---|\n" + text + "\n";
}

std::string skipped_part(const Evaluation& evaluation) {
  std::string text;
  for (const std::string& family : families(evaluation)) {
    for (const auto& [reason, rows] : skip_reasons(evaluation, family)) {
      text += row({family, std::to_string(rows), reason});
    }
  }
  if (text.empty()) return "";
  return "### Rows that are not simulated\n\n" + row({"family", "rows", "why"}) + "|---|---|---|\n" + text;
}

}  // namespace

std::string to_markdown(const Evaluation& evaluation) {
  return errors_part(evaluation, Role::kTested, "Tested only") +
         errors_part(evaluation, Role::kAssumed, "Tested only, with settings that the source leaves open") +
         errors_part(evaluation, Role::kFitted, "Constants were fitted to these") + groups_part(evaluation) +
         fits_part(evaluation) + skipped_part(evaluation);
}

}  // namespace trainsim::report
