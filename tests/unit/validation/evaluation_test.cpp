// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/evaluation.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "sim/report/validation.hpp"

namespace trainsim::validation {
namespace {

Comparison row(const std::string& id, double measured, double simulated, const std::string& group = "",
               Role role = Role::kTested) {
  return {id, "family", "step", role, Unit::kSeconds, {measured, simulated}, group, 1, {}};
}

Evaluation example() {
  Evaluation evaluation;
  evaluation.comparisons = {row("a", 10, 11, "g"), row("b", 20, 18, "g"), row("c", 30, 36, "g"),
                            row("d", 40, 40, "", Role::kFitted)};
  evaluation.skipped = {{"e", "family", "why"}, {"f", "family", "why"}, {"g", "other", "else"}};
  evaluation.malformed["broken"] = 1;
  return evaluation;
}

TEST(Evaluation, StatisticsAreByFamilyQuantityAndRole) {
  const Evaluation evaluation = example();
  const std::vector<FamilyErrors> errors = family_errors(evaluation);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].errors.rows, 3U);
  EXPECT_NEAR(errors[0].errors.mean, (0.1 + 0.1 + 0.2) / 3, 1e-12);
  EXPECT_EQ(errors[0].worst.front()->id, "c");
  EXPECT_EQ(errors[1].role, Role::kFitted);
}

TEST(Evaluation, GroupsRankPlansByTimePerSequence) {
  Evaluation evaluation = example();
  // Twice the batch in 24 s (20 s simulated) is faster than any other.
  Comparison big = row("big", 16, 18, "g");
  big.sequences = 2;
  evaluation.comparisons.push_back(big);
  const std::vector<PlanGroup> groups = plan_groups(evaluation);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].rows, 4U);
  EXPECT_NEAR(groups[0].kendall_tau, 1.0, 1e-12);
  EXPECT_EQ(groups[0].regret, 0.0);
}

TEST(Evaluation, ManyGroupsAreCondensedToTheirMean) {
  std::vector<PlanGroup> groups(11, PlanGroup{"many", "g", 3, 1.0, 0.5, 0.0});
  groups[0].kendall_tau = 0.0;
  groups.push_back({"few", "g", 4, 0.25, 0.5, 0.125});
  const std::vector<PlanGroup> result = condensed(groups);
  ASSERT_EQ(result.size(), 2U);
  EXPECT_EQ(result[0].kendall_tau, 0.25);
  EXPECT_EQ(result[1].label, "mean of 11 groups");
  EXPECT_EQ(result[1].rows, 33U);
  EXPECT_NEAR(result[1].kendall_tau, 10.0 / 11.0, 1e-12);
}

TEST(Evaluation, ReasonsAreCounted) {
  const auto reasons = skip_reasons(example(), "family");
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0], (std::pair<std::string, int>{"why", 2}));
  EXPECT_EQ(families(example()), (std::vector<std::string>{"broken", "family", "other"}));
}

TEST(EvaluationReport, TextNamesErrorsWorstRowsAndWhatIsMissing) {
  const std::string text = report::to_text(example());
  for (const char* part :
       {"family (fitted to these)", "13.3 %", "+20.0 %", "Plans of one model", "2  why",
        "malformed; see the messages above", "4 comparisons, 3 rows skipped, 1 malformed"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(EvaluationReport, CsvHasALinePerComparison) {
  const std::string text = report::to_csv(example());
  EXPECT_NE(text.find("family,a,step,tested,s,10,11,"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

TEST(EvaluationReport, MarkdownKeepsTestedAndFittedApart) {
  const std::string text = report::to_markdown(example());
  const std::size_t tested = text.find("### Tested only");
  const std::size_t fitted = text.find("### Constants were fitted to these");
  ASSERT_NE(tested, std::string::npos);
  ASSERT_NE(fitted, std::string::npos);
  EXPECT_NE(text.find("| family | step | 3 | 13.3 % | 10.0 % | +6.7 % | +20.0 % | `c` |", tested),
            std::string::npos)
      << text;
}

TEST(EvaluationReport, ThePictureHasAMarkPerStepTime) {
  const std::string svg = report::to_svg(example());
  std::size_t marks = 0;
  for (std::size_t at = svg.find("<title>"); at != std::string::npos; at = svg.find("<title>", at + 1))
    ++marks;
  EXPECT_EQ(marks, 4U);
  EXPECT_NE(svg.find("a: measured 10.00 s, simulated 11.00 s, error 10.0 %"), std::string::npos);
  EXPECT_NE(report::to_svg({}).find("no step time was compared"), std::string::npos);
}

}  // namespace
}  // namespace trainsim::validation
