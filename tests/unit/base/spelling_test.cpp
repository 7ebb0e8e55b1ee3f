// SPDX-License-Identifier: Apache-2.0
#include "sim/base/spelling.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace trainsim {
namespace {

const std::vector<std::string> kKeys = {"tensor_parallel", "pipeline_parallel", "gpus", "plan"};

TEST(ClosestMatch, FindsOneEditOfEachKind) {
  EXPECT_EQ(closest_match("gpu", kKeys), "gpus");    // one letter missing
  EXPECT_EQ(closest_match("gpuss", kKeys), "gpus");  // one too many
  EXPECT_EQ(closest_match("gpis", kKeys), "gpus");   // one wrong
  EXPECT_EQ(closest_match("gups", kKeys), "gpus");   // two swapped count as one
}

TEST(ClosestMatch, IgnoresCase) {
  EXPECT_EQ(closest_match("Tensor_Parallel", kKeys), "tensor_parallel");
}

TEST(ClosestMatch, AllowsAThirdOfTheWord) {
  // 15 letters allow 5 edits: "tensor" with " parallel" cut by 5 is close, cut by 6 of 9 letters it is not.
  EXPECT_EQ(closest_match("tensr_paralel", kKeys), "tensor_parallel");  // 2 edits, 13 letters allow 4
  EXPECT_EQ(closest_match("tp", kKeys), "");
  EXPECT_EQ(closest_match("pipeline", kKeys), "");  // 9 letters missing, 8 letters allow 2
}

TEST(ClosestMatch, PrefersTheClosestAndThenTheFirst) {
  EXPECT_EQ(closest_match("fp31", {"fp16", "fp32"}), "fp32");
  EXPECT_EQ(closest_match("fp3", {"fp32", "fp31"}), "fp32");
}

TEST(ClosestMatch, GivesUpOnVeryLongWords) {
  EXPECT_EQ(closest_match(std::string(100, 'x'), {std::string(100, 'x')}), "");
}

TEST(JoinAlternatives, PutsOrBeforeTheLast) {
  EXPECT_EQ(join_alternatives({}), "");
  EXPECT_EQ(join_alternatives({"a"}), "a");
  EXPECT_EQ(join_alternatives({"a", "b"}), "a or b");
  EXPECT_EQ(join_alternatives({"a", "b", "c"}), "a, b or c");
}

TEST(Divisors, AreAscendingAndComplete) {
  EXPECT_EQ(divisors(1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(divisors(13), (std::vector<std::int64_t>{1, 13}));
  EXPECT_EQ(divisors(36), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 9, 12, 18, 36}));
}

TEST(NearestMultiples, AreBelowAndAbove) {
  EXPECT_EQ(nearest_multiples(10, 4), "8 or 12");
  EXPECT_EQ(nearest_multiples(3, 4), "4");
  EXPECT_EQ(nearest_multiples(4, 4), "4 or 8");
}

TEST(JoinNumbers, CutsLongListsInTheMiddle) {
  EXPECT_EQ(join_numbers({1, 2, 4}), "1, 2, 4");
  std::vector<std::int64_t> many(12);
  std::iota(many.begin(), many.end(), 1);
  EXPECT_EQ(join_numbers(many), "1, 2, 3, 4, 5, 6, …, 11, 12");
}

}  // namespace
}  // namespace trainsim
