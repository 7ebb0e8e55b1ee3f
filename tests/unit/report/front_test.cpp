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

/// The sentence on a front of points that are called "#0", "#1", …
std::string sentence(const std::vector<std::pair<double, double>>& points) {
  return front_sentence(points, {"point that fits", "points that fit", "least memory",
                                 [](std::size_t point) { return "#" + std::to_string(point); }});
}

TEST(FrontSentence, NamesBothEnds) {
  EXPECT_EQ(
      sentence({{1, 5}, {2, 6}, {3, 2}}),
      "2 of 3 points that fit are worth a look, from the fastest, #0, to the one with least memory, #2. "
      "Each of the others is beaten by one of these.");
}

TEST(FrontSentence, DoesNotSpeakOfOthersWhereThereAreNone) {
  EXPECT_EQ(sentence({}), "");
  EXPECT_EQ(sentence({{1, 5}}), "There is one point that fits: #0.");
  EXPECT_EQ(sentence({{2, 3}, {1, 5}}),
            "Both points that fit are worth a look, from the fastest, #1, to the one with least memory, #0.");
}

TEST(FrontSentence, CountsPointsBeyondTwo) {
  EXPECT_EQ(
      sentence({{1, 5}, {2, 4}, {3, 3}}),
      "All 3 points that fit are worth a look, from the fastest, #0, to the one with least memory, #2.");
}

TEST(FrontSentence, SaysWhatBeatsAllOthersAndWhatIsEqual) {
  EXPECT_EQ(sentence({{2, 5}, {1, 4}}), "One of 2 points that fit beats all others: #1.");
  EXPECT_EQ(sentence({{1, 5}, {1, 5}}), "Both points that fit are equal in both numbers: the first is #0.");
  EXPECT_EQ(
      sentence({{2, 5}, {1, 5}, {1, 5}}),
      "2 of 3 points that fit are equal in both numbers: the first is #1. Each of the others is beaten by "
      "one of these.");
}

}  // namespace
}  // namespace trainsim::report
