// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/page.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/report/page/frame.hpp"
#include "sim/report/page/parts.hpp"
#include "tests/unit/report/outcome.hpp"

namespace trainsim::report {
namespace {

using program::Cause;
using tests::kTight;
using tests::simulated;
using tests::varied_plans;
using tests::written_by_hand;

TEST(Waterfall, TotalsAreWhatCostsAddUpTo) {
  // 24 s on one GPU are 6 s on each of four. Computing takes (2 + 3)/2 + (4 + 5)/2 + 2/2 = 8 s, 2 s more;
  // imbalance and bubble take 2 s each, which makes the 12 s of the step.
  const std::vector<WaterfallBar> bars = waterfall(written_by_hand().summary());
  ASSERT_EQ(bars.size(), 7U);
  EXPECT_TRUE(bars[0].is_total);
  EXPECT_TRUE(bars[2].is_total);
  EXPECT_NEAR(bars[0].seconds + bars[1].seconds, 6, kTight);
  EXPECT_NEAR(bars[2].seconds, 6, kTight);
  EXPECT_EQ(bars[3].name, "Split kernels");
  EXPECT_NEAR(bars[3].seconds, 2, kTight);
  EXPECT_EQ(bars[4].name, "Imbalance");
  EXPECT_NEAR(bars[4].seconds, 2, kTight);
  EXPECT_EQ(bars[5].name, "Pipeline bubble");
  EXPECT_NEAR(bars[5].seconds, 2, kTight);
  EXPECT_EQ(bars[6].seconds, 12);
}

TEST(Waterfall, AddsUpWhateverThePlan) {
  for (const plan::ParallelPlan& plan : varied_plans()) {
    const Summary summary = simulated(tests::gpt({4}), plan).summary();
    double at = 0;
    for (const WaterfallBar& bar : waterfall(summary)) {
      if (bar.is_total && at > 0) {
        EXPECT_NEAR(bar.seconds / at, 1, 1e-9);
      }
      at = bar.is_total ? bar.seconds : at + bar.seconds;
    }
    EXPECT_EQ(at, summary.step_time);
  }
}

/// A change to `label` that leaves 5 % of a 10 s step for the bubble.
PlanChange change_to(const std::string& label, double throughput, Verdict verdict) {
  PlanChange change;
  change.label = label;
  change.relative_throughput = throughput;
  change.step_time = 10;
  change.bubble_ratio = 0.05;
  change.breakdown[static_cast<std::size_t>(Cause::kBubble)] = 0.5;
  change.verdict = verdict;
  return change;
}

TEST(Diagnosis, NamesLossesAndTheBestChangeThatFits) {
  // Bubble and imbalance take 2 of 12 s each, 16.7 %; the bubble ratio is 30 % (see SummaryDefinitions).
  WhatIf what_if{12, {}, {}};
  what_if.changes = {change_to("Too large", 1.4, Verdict::kDoesNotFit),
                     change_to("Good", 1.2, Verdict::kFits), change_to("Fair", 1.1, Verdict::kFits)};
  what_if.changes.push_back(change_to("More", 1.05, Verdict::kFits));
  what_if.changes.back().keeps_batch = false;
  const Diagnosis diagnosis = diagnose(written_by_hand().summary(), what_if);
  ASSERT_EQ(diagnosis.findings.size(), 4U);
  EXPECT_EQ(diagnosis.findings[0].name + " " + diagnosis.findings[0].amount, "Bubble 30.0 %");
  EXPECT_EQ(diagnosis.findings[0].advice,
            "Good would bring it to 5.0 %, with 20.0 % more tokens per second. More would bring it to 5.0 %, "
            "with 5.0 % "
            "more tokens per second.");
  EXPECT_EQ(diagnosis.findings[1].name + " " + diagnosis.findings[1].amount, "Imbalance 16.7 %");
  EXPECT_EQ(diagnosis.findings[2].name, "Kernels");
  EXPECT_EQ(diagnosis.findings[3].name + " " + diagnosis.findings[3].amount, "Memory fits");
  EXPECT_EQ(
      diagnosis.headline,
      "A step takes 12.00 s. GPUs spend 66.7 % of it on forward, backward and optimizer; the largest loss is "
      "bubble, 16.7 %.");
}

TEST(Diagnosis, SaysWhenNothingHelps) {
  const Diagnosis diagnosis =
      diagnose(written_by_hand().summary(), {12, {}, {change_to("Slower", 0.9, Verdict::kFits)}});
  EXPECT_EQ(diagnosis.findings[0].advice,
            "No single change that was tried lowers it, fits, and raises throughput.");
}

TEST(Diagnosis, NamesTheKernelThatMattersMost) {
  WhatIf what_if{12, {{"large", 11.4, 10.8}, {"critical", 10.8, 9.6}}, {}};
  const Diagnosis diagnosis = diagnose(written_by_hand().summary(), what_if);
  EXPECT_EQ(
      diagnosis.findings[2].advice,
      "The kernel that matters most is 'critical': were it twice as fast, the step would be 10.0 % shorter.");
}

TEST(Escaping, NothingEndsTheScriptOrTheText) {
  EXPECT_EQ(script_safe(Json("</script><!-- &")), "\"\\u003c/script\\u003e\\u003c!-- \\u0026\"");
  EXPECT_EQ(html_safe("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
  EXPECT_EQ(Json::parse(script_safe(Json("</script>"))), Json("</script>"));
}

}  // namespace
}  // namespace trainsim::report
