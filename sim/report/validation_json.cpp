// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "sim/report/csv_cells.hpp"
#include "sim/report/json_dump.hpp"
#include "sim/report/validation.hpp"

namespace trainsim::report {

namespace {

using validation::Comparison;
using validation::Evaluation;

Json families_json(const Evaluation& evaluation) {
  Json list = Json::array();
  for (const validation::FamilyErrors& family : family_errors(evaluation)) {
    list.push_back({{"family", family.family},
                    {"quantity", family.quantity},
                    {"role", to_string(family.role)},
                    {"rows", family.errors.rows},
                    {"mean_absolute_error", family.errors.mean},
                    {"median_absolute_error", family.errors.median},
                    {"mean_signed_error", family.errors.bias},
                    {"worst_error", family.errors.worst},
                    {"worst_row", family.worst.front()->id},
                    {"one_sign", family.errors.one_sign}});
  }
  return list;
}

Json groups_json(const Evaluation& evaluation) {
  Json list = Json::array();
  for (const validation::PlanGroup& group : plan_groups(evaluation)) {
    list.push_back({{"family", group.family},
                    {"group", group.label},
                    {"rows", group.rows},
                    {"kendall_tau", group.kendall_tau},
                    {"spearman_rho", group.spearman_rho},
                    {"regret", group.regret}});
  }
  return list;
}

Json rows_json(const Evaluation& evaluation) {
  Json list = Json::array();
  for (const Comparison& row : evaluation.comparisons) {
    list.push_back({{"id", row.id},
                    {"family", row.family},
                    {"quantity", row.quantity},
                    {"role", to_string(row.role)},
                    {"unit", to_string(row.unit)},
                    {"measured", row.values.measured},
                    {"simulated", row.values.simulated},
                    {"error", row.values.error()},
                    {"assumptions", row.assumptions}});
  }
  return list;
}

Json fits_json(const Evaluation& evaluation) {
  Json list = Json::array();
  for (const validation::FamilyFits& family : family_fits(evaluation)) {
    list.push_back({{"family", family.family},
                    {"fitted", family.fitted},
                    {"fitted_right", family.fitted_right},
                    {"ran_out", family.ran_out},
                    {"ran_out_right", family.ran_out_right},
                    {"wrong", family.wrong}});
  }
  return list;
}

Json skipped_json(const Evaluation& evaluation) {
  Json list = Json::array();
  for (const validation::Skipped& row : evaluation.skipped) {
    list.push_back({{"id", row.id}, {"family", row.family}, {"reason", row.reason}});
  }
  return list;
}

}  // namespace

std::string to_json(const Evaluation& evaluation) {
  return dump({{"schema", 1},
               {"families", families_json(evaluation)},
               {"groups", groups_json(evaluation)},
               {"fits", fits_json(evaluation)},
               {"rows", rows_json(evaluation)},
               {"skipped", skipped_json(evaluation)},
               {"malformed", evaluation.malformed},
               {"problems", evaluation.problems},
               {"wall_s", evaluation.wall_time}});
}

std::string to_csv(const Evaluation& evaluation) {
  std::string text = "family,id,quantity,role,unit,measured,simulated,error\n";
  for (const Comparison& row : evaluation.comparisons) {
    text += cell(row.family) + "," + cell(row.id) + "," + cell(row.quantity) + "," + to_string(row.role) +
            "," + to_string(row.unit) + "," + exact(row.values.measured) + "," + exact(row.values.simulated) +
            "," + exact(row.values.error()) + "\n";
  }
  return text;
}

}  // namespace trainsim::report
