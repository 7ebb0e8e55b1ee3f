// SPDX-License-Identifier: Apache-2.0
#include "sim/report/placement.hpp"

#include <gtest/gtest.h>

namespace trainsim::report {
namespace {

using program::Cause;

PlacementResult result(Seconds step_time, Seconds data, std::int64_t nodes) {
  PlacementResult result;
  result.step_time = step_time;
  result.breakdown[static_cast<std::size_t>(Cause::kDataCommunication)] = data;
  result.nodes = {{"data", nodes}, {"pipeline", 2}};
  result.company = {{"data", {"pipeline", "tensor"}}, {"pipeline", {"data"}}};
  return result;
}

TEST(Placement, SaysWhatMoved) {
  PlacementResult better = result(9.69, 0.69, 8);
  better.company["data"] = {"tensor"};
  EXPECT_EQ(
      why_placement(result(10, 1, 16), better),
      "data communication 310.0 ms less; data groups on 8 nodes instead of 16; pipeline transfers leave "
      "the slowest link of data-parallel rings alone");
  EXPECT_EQ(why_placement(better, result(10, 1, 8)),
            "data communication 310.0 ms more; pipeline transfers share the slowest link of data-parallel "
            "rings");
  EXPECT_EQ(why_placement(result(10, 1, 1), result(10.001, 1.001, 1)), "as fast within 0.10 %");
}

TEST(Placement, CrossesAPipeUnchanged) {
  const PlacementResult sent = result(1.0 / 3, 0.1, 7);
  const PlacementResult received = unpacked_placement(packed(sent));
  EXPECT_EQ(received.step_time, sent.step_time);
  EXPECT_EQ(received.breakdown, sent.breakdown);
  EXPECT_EQ(received.nodes, sent.nodes);
  EXPECT_EQ(received.company, sent.company);
}

TEST(Placement, NamesTheBestIfItIsBetter) {
  Summary summary;
  summary.step_time = 10;
  summary.breakdown = result(10, 1, 16).breakdown;
  summary.placement = Placement{{{"order tp-pp-dp", {"plan.order=tp-pp-dp"}, result(12, 3, 16)},
                                 {"order pp-tp-dp", {"plan.order=pp-tp-dp"}, result(9.69, 0.69, 16)}},
                                ""};
  sort_by_step_time(*summary.placement);
  EXPECT_EQ(placement_sentence(summary),
            "The best, order pp-tp-dp, would take 3.1 % less: data communication 310.0 ms less.");
  EXPECT_EQ(placement_csv(summary),
            "meaning,set,step_time_s,relative\nown,,10,1\norder pp-tp-dp,plan.order=pp-tp-dp,9.69,0.969\n"
            "order tp-pp-dp,plan.order=tp-pp-dp,12,1.2\n");
  summary.placement->rows.erase(summary.placement->rows.begin());
  EXPECT_EQ(placement_sentence(summary), "No other placement takes less than yours by more than 0.10 %.");
  EXPECT_EQ(placement_json(Summary{}), nullptr);
}

}  // namespace
}  // namespace trainsim::report
