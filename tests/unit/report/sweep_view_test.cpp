// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/sweep_view.hpp"

#include <optional>

#include <gtest/gtest.h>

namespace trainsim::report {
namespace {

using sweep::CellKind;
using sweep::Row;

/// A point of a sweep: 1000 tokens in a step of so many seconds, on one GPU.
Row point(const std::vector<std::pair<std::string, std::string>>& values, double seconds, double gib,
          bool fits) {
  Row row;
  for (const auto& [key, value] : values) row.push_back(sweep::value_cell(key, value));
  const auto number = [&row](const char* name, double value) {
    row.push_back({name, std::to_string(value), CellKind::kBare});
  };
  row.push_back({"name", "plan", CellKind::kText});
  number("gpus", 1);
  number("micro_batch_size", 1);
  number("step_time_s", seconds);
  number("tokens_per_s", 1000 / seconds);
  number("tokens_per_s_per_gpu", 1000 / seconds);
  number("mfu", 0.5);
  row.push_back({"fits", fits ? "true" : "false", CellKind::kBare});
  number("peak_memory_bytes", gib * 1024 * 1024 * 1024);
  row.push_back({"error", "", CellKind::kNone});
  return row;
}

Row illegal(const std::vector<std::pair<std::string, std::string>>& values) {
  Row row;
  for (const auto& [key, value] : values) row.push_back(sweep::value_cell(key, value));
  row.push_back({"name", "", CellKind::kNone});
  row.push_back({"error", "no such plan", CellKind::kText});
  return row;
}

TEST(SweepView, TheBestFitsAndCurvesGoThroughIt) {
  const std::vector<Row> rows = {
      point({{"a", "1"}, {"b", "x"}}, 4, 10, true), point({{"a", "1"}, {"b", "y"}}, 2, 20, true),
      point({{"a", "2"}, {"b", "x"}}, 1, 90, false), illegal({{"a", "2"}, {"b", "y"}})};
  const SweepView view = view_of(rows);
  EXPECT_EQ(view.best, std::optional<std::size_t>(1));
  ASSERT_EQ(view.curves.size(), 2);
  EXPECT_EQ(view.curves[0].rows, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(view.curves[1].rows, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(view.curves[0].sentences, (std::vector<std::string>{"1 value is not legal."}));
  // 500 tokens per second against 250.
  EXPECT_EQ(view.curves[1].sentences,
            (std::vector<std::string>{"Of what fits, b=y trains most tokens per second and GPU (500.0), and "
                                      "b=x the fewest (50.0 % less)."}));
  EXPECT_EQ(view.memory.rows, (std::vector<std::size_t>{1, 0}));
  EXPECT_FALSE(view.cost);
  EXPECT_FALSE(view.per_token);
}

TEST(SweepView, PointsThatAreAsGood) {
  const std::vector<Row> rows = {point({{"a", "1"}}, 2, 10, true), point({{"a", "2"}}, 2, 10, true),
                                 point({{"a", "3"}}, 2.0008, 10, true)};
  EXPECT_EQ(view_of(rows).curves[0].sentences,
            (std::vector<std::string>{
                "All 3 values that fit train as many tokens per second and GPU (500.0), within 0.050 %."}));
}

TEST(SweepView, TheFirstOfEqualPointsIsTheBestInAllSentences) {
  const SweepView view = view_of(
      {point({{"a", "1"}}, 2, 10, true), point({{"a", "2"}}, 2, 10, true), point({{"a", "3"}}, 4, 10, true)});
  EXPECT_NE(view.headline.find("a=1 trains most tokens"), std::string::npos) << view.headline;
  EXPECT_EQ(view.curves[0].sentences,
            (std::vector<std::string>{"Of what fits, a=1 trains most tokens per second and GPU (500.0), and "
                                      "a=3 the fewest (50.0 % less)."}));
}

TEST(SweepView, SizesOfTheBatchThatAreNotLegal) {
  const std::string key = "plan.micro_batch_size";
  EXPECT_EQ(
      view_of({point({{key, "1"}}, 2, 10, true), illegal({{key, "3"}})}).curves[0].sentences,
      (std::vector<std::string>{"Memory is no limit here: plan.micro_batch_size = 1, the largest that is "
                                "legal, leaves 0 MiB.",
                                "1 value is not legal."}));
}

TEST(SweepView, FrontsNameTheirPointsWithBothNumbers) {
  EXPECT_EQ(view_of({point({{"a", "1"}}, 2, 10, true)}).memory.sentence,
            "There is one point that fits: a=1 (2.000 s, 10.0 GiB).");
}

TEST(SweepView, NothingThatFits) {
  const SweepView view = view_of({point({{"a", "1"}}, 4, 90, false), point({{"a", "2"}}, 3, 95, false)});
  EXPECT_EQ(view.best, std::optional<std::size_t>(1));
  EXPECT_TRUE(view.memory.rows.empty());
  EXPECT_EQ(view.memory.sentence, "No point fits into memory, so there is no front.");
  EXPECT_EQ(view.headline.substr(0, 27), "No point fits into memory. ");
}

TEST(SweepView, NothingThatIsLegal) {
  const SweepView view = view_of({illegal({{"a", "1"}}), illegal({{"a", "2"}})});
  EXPECT_FALSE(view.best);
  EXPECT_TRUE(view.curves.empty());
  EXPECT_EQ(view.headline, "None of the 2 points is legal; the table says why.");
  EXPECT_EQ(view_of({}).headline, "There are no points.");
}

}  // namespace
}  // namespace trainsim::report
