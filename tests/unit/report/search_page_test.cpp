// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/search_page.hpp"

#include <gtest/gtest.h>

namespace trainsim::report {
namespace {

PlanResult result_of(Seconds step_time, Bytes memory) {
  PlanResult result;
  result.step_time = step_time;
  result.peak_memory = memory;
  result.plan.gpus = result.plan.data_parallel = 8;
  return result;
}

/// A search whose best plan takes 10 s and 4 GiB, and the configuration's own `own` times as long and 2 GiB.
SearchReport searched(double own) {
  SearchReport report;
  report.legal = 12;
  report.plans = {result_of(10, Bytes{4} << 30)};
  report.own = result_of(10 * own, Bytes{2} << 30);
  report.own->relative = own;
  return report;
}

bool says(const SearchReport& report, const std::string& text) {
  return to_html({report, "trainsim search", "1"}).find(text) != std::string::npos;
}

TEST(SearchPage, SaysHowTheOwnPlanStands) {
  EXPECT_TRUE(says(searched(1.25), "on the fullest GPU. Yours takes 25.0 % more time per step."));
  EXPECT_TRUE(says(searched(0.75), "on the fullest GPU. Yours takes 25.0 % less time per step."));
  EXPECT_TRUE(says(searched(1 + 1e-7), "on the fullest GPU. Yours is as good."));
  EXPECT_TRUE(says(searched(1 - 1e-7), "on the fullest GPU. Yours is as good."));
}

TEST(SearchPage, AnOwnPlanThatBreaksALimitDoesNotCompete) {
  SearchReport report = searched(0.75);
  // Faster and with less memory it beats the best.
  EXPECT_TRUE(says(report, "One of 2 plans that were simulated in full beats all others: "));
  report.own_keeps_limits = false;
  EXPECT_TRUE(says(report, "on the fullest GPU. Yours breaks a limit."));
  EXPECT_TRUE(says(report, "There is one plan that was simulated in full: "));
  EXPECT_TRUE(says(report, "\"own_keeps_limits\":false"));
}

TEST(SearchPage, TheOnlyLegalPlan) {
  SearchReport report = searched(1);
  EXPECT_TRUE(says(report, "Best of 12 legal plans: TP1"));
  report.legal = 1;
  EXPECT_TRUE(says(report, "The only legal plan: TP1"));
}

}  // namespace
}  // namespace trainsim::report
