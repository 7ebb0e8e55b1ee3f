// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/front.hpp"

#include <gtest/gtest.h>

namespace trainsim::report {
namespace {

using Front = std::vector<std::size_t>;

TEST(ParetoFront, LeavesOutWhatIsBeaten) {
  // The second is slower than the first and needs more; the fourth needs as much as the third and is slower.
  EXPECT_EQ(pareto_front({{1, 5}, {2, 6}, {3, 2}, {4, 2}, {5, 1}}), (Front{0, 2, 4}));
}

TEST(ParetoFront, IsInTheOrderOfTheFirstNumber) {
  EXPECT_EQ(pareto_front({{3, 1}, {1, 3}, {2, 2}}), (Front{1, 2, 0}));
}

TEST(ParetoFront, KeepsPointsThatAreEqual) {
  EXPECT_EQ(pareto_front({{1, 1}, {1, 1}, {1, 2}}), (Front{0, 1}));
  EXPECT_TRUE(pareto_front({}).empty());
}

}  // namespace
}  // namespace trainsim::report
