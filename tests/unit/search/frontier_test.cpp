// SPDX-License-Identifier: Apache-2.0
#include "sim/search/frontier.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace trainsim::search {
namespace {

using Indices = std::vector<std::size_t>;

TEST(Frontier, LooksAtTheSmallestBoundsFirst) {
  Frontier frontier(1);
  frontier.set(0, Stage::kBounded, {0, 3});
  frontier.set(1, Stage::kBounded, {0, 1});
  frontier.set(2, Stage::kRanked, {0, 2});
  EXPECT_EQ(frontier.next(2), (Indices{1, 2}));
}

TEST(Frontier, StopsAtBoundsThatCantWin) {
  Frontier frontier(1);
  frontier.set(0, Stage::kConfirmed, {0, 2});
  frontier.set(1, Stage::kRanked, {0, 2.1});
  frontier.set(2, Stage::kBounded, {0, 1.9});
  EXPECT_EQ(frontier.next(9), (Indices{2}));
  frontier.drop(2);
  EXPECT_TRUE(frontier.next(9).empty());
  EXPECT_EQ(frontier.open(), 0U);
}

/// One that could be as good has to be looked at, as memory decides then.
TEST(Frontier, LooksAtTies) {
  Frontier frontier(1);
  frontier.set(0, Stage::kConfirmed, {0, 2});
  frontier.set(1, Stage::kRanked, {0, 2.0 * (1 + 1e-12)});
  EXPECT_EQ(frontier.next(9), (Indices{1}));
}

TEST(Frontier, NeedsAsManyAsAreWanted) {
  Frontier frontier(2);
  frontier.set(0, Stage::kConfirmed, {0, 1});
  frontier.set(1, Stage::kRanked, {0, 50});
  EXPECT_EQ(frontier.next(9), (Indices{1}));
  frontier.set(1, Stage::kConfirmed, {0, 50});
  frontier.set(2, Stage::kRanked, {0, 51});
  EXPECT_TRUE(frontier.next(9).empty());
}

TEST(Frontier, ComparesTheFirstNumberFirst) {
  Frontier frontier(1);
  frontier.set(0, Stage::kConfirmed, {8, 100});
  frontier.set(1, Stage::kBounded, {16, 1});
  EXPECT_TRUE(frontier.next(9).empty());
}

TEST(Frontier, NeverLowersABound) {
  Frontier frontier(1);
  frontier.set(0, Stage::kGuessed, {0, 3});
  frontier.set(0, Stage::kBounded, {0, 2});
  EXPECT_EQ(frontier.value(0).second, 3);
}

/// Against looking at everything: values with lower bounds below them, in random order, in rounds of some
/// size.
TEST(Frontier, FindsWhatExhaustionFinds) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(0.5, 1.0);
  for (int run = 0; run < 200; ++run) {
    const std::size_t count = 1 + random() % 60;
    const std::size_t wanted = 1 + random() % 5;
    std::vector<double> values(count);
    std::vector<double> ranked(count);
    Frontier frontier(wanted);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = rounded(100 * share(random));
      ranked[i] = values[i] * share(random);
      frontier.set(i, Stage::kBounded, {0, ranked[i] * share(random)});
    }
    std::size_t looked_at = 0;
    for (Indices next = frontier.next(4); !next.empty(); next = frontier.next(4)) {
      for (const std::size_t i : next) {
        const bool bounded = frontier.stage(i) == Stage::kBounded;
        frontier.set(i, bounded ? Stage::kRanked : Stage::kConfirmed, {0, bounded ? ranked[i] : values[i]});
        looked_at += bounded ? 0 : 1;
      }
    }
    std::vector<double> found;
    for (std::size_t i = 0; i < count; ++i) {
      if (frontier.stage(i) == Stage::kConfirmed) found.push_back(values[i]);
    }
    ASSERT_EQ(found.size(), looked_at);
    std::sort(found.begin(), found.end());
    std::sort(values.begin(), values.end());
    ASSERT_GE(found.size(), std::min(wanted, count));
    for (std::size_t i = 0; i < std::min(wanted, count); ++i) EXPECT_EQ(found[i], values[i]);
  }
}

TEST(Frontier, RoundsToNineDigits) {
  EXPECT_EQ(rounded(1.2345678901), 1.23456789);
  EXPECT_EQ(rounded(0), 0);
}

}  // namespace
}  // namespace trainsim::search
