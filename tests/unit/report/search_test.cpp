// SPDX-License-Identifier: Apache-2.0
#include "sim/report/search.hpp"

#include <gtest/gtest.h>

namespace trainsim::report {
namespace {

using program::Cause;

PlanResult result_of(Seconds step_time, Bytes memory) {
  PlanResult result;
  result.step_time = step_time;
  result.peak_memory = memory;
  result.plan.gpus = result.plan.data_parallel = 8;
  result.breakdown[static_cast<std::size_t>(Cause::kForward)] = step_time;
  return result;
}

void set(PlanResult& result, Cause cause, Seconds seconds) {
  result.breakdown[static_cast<std::size_t>(cause)] = seconds;
}

TEST(SearchReport, NamesTheCausesThatMoved) {
  PlanResult from = result_of(10, 1 << 30);
  PlanResult to = result_of(10.4, 1 << 30);
  set(from, Cause::kForward, 8);
  set(to, Cause::kForward, 8.005);
  set(from, Cause::kBubble, 1);
  set(to, Cause::kBubble, 1.5);
  set(from, Cause::kTensorCommunication, 1);
  set(to, Cause::kTensorCommunication, 0.9);
  EXPECT_EQ(explain_difference(from, to), "bubble 500.0 ms more, tensor communication 100.0 ms less");
}

TEST(SearchReport, NamesMemoryWhereTimesAreEqual) {
  const PlanResult from = result_of(10, Bytes{2} << 30);
  EXPECT_EQ(explain_difference(from, from), "as fast within 0.10 %, with as much memory");
  EXPECT_EQ(explain_difference(from, result_of(10, Bytes{5} << 30)),
            "as fast within 0.10 %, with 3.00 GiB more memory");
}

TEST(SearchReport, NamesGpusWhereTheyDiffer) {
  const PlanResult from = result_of(10, 0);
  PlanResult to = result_of(5, 0);
  to.plan.gpus = 16;
  EXPECT_EQ(explain_difference(from, to),
            "16 GPUs and a step of 5.000 s against 8 and 10.00 s: forward 5.000 s less");
}

/// 8 GPUs for half an hour are 4 GPU-hours.
TEST(SearchReport, CountsGpuHours) {
  EXPECT_DOUBLE_EQ(gpu_hours(result_of(1800, 0)), 4);
}

NeighbourReport around(const PlanResult& own, const std::vector<PlanResult>& others) {
  NeighbourReport report;
  report.name = "plan";
  report.own = own;
  for (const PlanResult& other : others) report.neighbours.push_back({"schedule 1f1b -> gpipe", other});
  return report;
}

TEST(Neighbours, SayWhatThePlannerLeftOnTheTable) {
  PlanResult better = result_of(10, Bytes{6} << 30);
  better.plan.tensor_parallel = 4;
  better.plan.pipeline_parallel = 8;
  EXPECT_EQ(
      verdict_on(around(result_of(10.63, Bytes{10} << 30), {better})),
      "yours is 6.3 % slower than TP4 PP8 DP8, micro-batch 1, 1f1b, recompute none, sharding none (schedule "
      "1f1b -> gpipe), which needs 4.00 GiB less");
  EXPECT_EQ(verdict_on(around(result_of(9.5, Bytes{1} << 30), {result_of(10, Bytes{2} << 30)})),
            "yours is 5.0 % faster than the best neighbour, TP1 PP1 DP8, micro-batch 1, recompute none, "
            "sharding none "
            "(schedule 1f1b -> gpipe), which needs 1.00 GiB more");
}

TEST(Neighbours, DoNotPraiseWhatDoesNotFit) {
  PlanResult other = result_of(5, 0);
  other.verdict = Verdict::kDoesNotFit;
  EXPECT_EQ(verdict_on(around(result_of(10, 0), {other})), "no neighbour fits into memory; yours does");
  PlanResult own = result_of(10, Bytes{9} << 30);
  own.verdict = Verdict::kDoesNotFit;
  own.headroom = -(Bytes{1} << 30);
  EXPECT_EQ(verdict_on(around(own, {other})), "neither yours nor a neighbour fits into memory");
  EXPECT_EQ(verdict_on(around(own, {result_of(12, Bytes{7} << 30)})),
            "yours does not fit (1.00 GiB too much); the fastest neighbour that does is TP1 PP1 DP8, "
            "micro-batch 1, "
            "recompute none, sharding none (schedule 1f1b -> gpipe) with 12.00 s, which needs 2.00 GiB less");
}

TEST(SearchReport, MarksWhatIsIncomplete) {
  SearchReport report;
  report.plans = {result_of(10, 0)};
  EXPECT_EQ(to_text(report).find("INCOMPLETE"), std::string::npos);
  report.complete = false;
  EXPECT_NE(to_text(report).find("INCOMPLETE"), std::string::npos);
  EXPECT_NE(to_json(report).find("\"complete\": false"), std::string::npos);
  EXPECT_NE(to_csv(report).find(",1,false,"), std::string::npos);
}

}  // namespace
}  // namespace trainsim::report
