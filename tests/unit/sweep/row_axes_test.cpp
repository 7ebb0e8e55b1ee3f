// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/row_axes.hpp"

#include <gtest/gtest.h>

namespace trainsim::sweep {
namespace {

/// Rows of these keys, one for each list of values.
std::vector<Row> rows_of(const std::vector<std::string>& keys,
                         const std::vector<std::vector<std::string>>& lists) {
  std::vector<Row> rows;
  for (const std::vector<std::string>& values : lists) {
    Row row;
    for (std::size_t k = 0; k < keys.size(); ++k) row.push_back(value_cell(keys[k], values[k]));
    row.push_back({std::string(kFirstResult), "plan", CellKind::kText});
    rows.push_back(std::move(row));
  }
  return rows;
}

using Values = std::vector<std::vector<std::string>>;

TEST(RowAxes, CombinationsAreAxesOfTheirOwn) {
  const auto axes = axes_of(rows_of({"a", "b"}, {{"4", "x"}, {"4", "y"}, {"2", "x"}, {"2", "y"}}));
  ASSERT_EQ(axes.size(), 2);
  // Numbers ascend, whatever order they came in; other values keep theirs.
  EXPECT_EQ(axes[0].values, (Values{{"2"}, {"4"}}));
  EXPECT_EQ(axes[0].numbers, (std::vector<double>{2, 4}));
  EXPECT_EQ(axes[0].positions, (std::vector<std::size_t>{1, 1, 0, 0}));
  EXPECT_EQ(axes[1].values, (Values{{"x"}, {"y"}}));
  EXPECT_TRUE(axes[1].numbers.empty());
}

TEST(RowAxes, KeysThatChangeTogetherAreOne) {
  const auto axes =
      axes_of(rows_of({"a", "b", "c"}, {{"1", "x", "0"}, {"2", "y", "0"}, {"1", "x", "1"}, {"2", "y", "1"}}));
  ASSERT_EQ(axes.size(), 2);
  EXPECT_EQ(axes[0].keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(axes[0].values, (Values{{"1", "x"}, {"2", "y"}}));
  EXPECT_TRUE(axes[0].numbers.empty());
  EXPECT_EQ(axes[1].keys, (std::vector<std::string>{"c"}));
}

TEST(RowAxes, AKeyThatIsTheSameEverywhereIsNone) {
  const auto axes = axes_of(rows_of({"a", "b"}, {{"1", "x"}, {"2", "x"}}));
  ASSERT_EQ(axes.size(), 1);
  EXPECT_EQ(axes[0].keys, (std::vector<std::string>{"a"}));
  EXPECT_TRUE(axes_of({}).empty());
}

TEST(RowAxes, NumbersHaveOneUnit) {
  EXPECT_EQ(axes_of(rows_of({"a"}, {{"400 Gb/s"}, {"100 Gb/s"}}))[0].numbers,
            (std::vector<double>{100, 400}));
  EXPECT_TRUE(axes_of(rows_of({"a"}, {{"400 Gb/s"}, {"1 Tb/s"}}))[0].numbers.empty());
  EXPECT_TRUE(axes_of(rows_of({"a"}, {{"1"}, {"full"}}))[0].numbers.empty());
}

}  // namespace
}  // namespace trainsim::sweep
