// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/values.hpp"

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::sweep {
namespace {

using Texts = std::vector<std::string>;

Texts expand(const std::string& text) {
  return expand_values(text, "--vary k");
}

std::string error_of(const std::string& text) {
  try {
    expand(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SweepValues, ListsAreSplitAtCommas) {
  EXPECT_EQ(expand("1,2,4"), (Texts{"1", "2", "4"}));
  EXPECT_EQ(expand("none, selective ,full"), (Texts{"none", "selective", "full"}));
}

TEST(SweepValues, CommasInsideOfBracketsAndQuotesDoNotSplit) {
  EXPECT_EQ(expand("none,{granularity: full, layers: 2},[1,[2,3]],'a,b'"),
            (Texts{"none", "{granularity: full, layers: 2}", "[1,[2,3]]", "'a,b'"}));
}

TEST(SweepValues, RangesOfWholeNumbers) {
  EXPECT_EQ(expand("1..4"), (Texts{"1", "2", "3", "4"}));
  EXPECT_EQ(expand("1..9+2"), (Texts{"1", "3", "5", "7", "9"}));
  EXPECT_EQ(expand("1..64*2"), (Texts{"1", "2", "4", "8", "16", "32", "64"}));
  EXPECT_EQ(expand("3..3"), (Texts{"3"}));
}

TEST(SweepValues, TheEndOfARangeIsPartOfItOnlyIfItIsHit) {
  EXPECT_EQ(expand("1..10+4"), (Texts{"1", "5", "9"}));
  EXPECT_EQ(expand("1..100*3"), (Texts{"1", "3", "9", "27", "81"}));
}

TEST(SweepValues, RangesAndValuesMix) {
  EXPECT_EQ(expand("1,2..8*2,12"), (Texts{"1", "2", "4", "8", "12"}));
}

TEST(SweepValues, FractionsDoNotDrift) {
  EXPECT_EQ(expand("0.1..0.5+0.1"), (Texts{"0.1", "0.2", "0.3", "0.4", "0.5"}));
  EXPECT_EQ(expand("1..2*1.5"), (Texts{"1", "1.5"}));
  EXPECT_EQ(expand("1e3..4e3*2"), (Texts{"1000", "2000", "4000"}));
}

TEST(SweepValues, UnitsAreCarriedAlong) {
  EXPECT_EQ(expand("100..400*2 Gb/s"), (Texts{"100 Gb/s", "200 Gb/s", "400 Gb/s"}));
  EXPECT_EQ(expand("100 Gb/s..400 Gb/s*2"), (Texts{"100 Gb/s", "200 Gb/s", "400 Gb/s"}));
  EXPECT_EQ(expand("1k..4k*2"), (Texts{"1k", "2k", "4k"}));
  EXPECT_NE(error_of("1 MiB..1 GiB*2").find("different units"), std::string::npos);
}

TEST(SweepValues, PathsWithTwoDotsAreNoRanges) {
  EXPECT_EQ(expand("../a.yaml,../b.yaml"), (Texts{"../a.yaml", "../b.yaml"}));
}

TEST(SweepValues, BadListsAreRefused) {
  EXPECT_EQ(error_of(""),
            "trainsim: error: --vary k: there are no values; write for example 1,2,4 or 1..64*2");
  EXPECT_EQ(
      error_of("1,,2"),
      "trainsim: error: --vary k: there is an empty value between two commas; remove it, or write null");
  EXPECT_EQ(error_of("1..x"),
            "trainsim: error: --vary k: '1..x' is no range; write 1..8, 1..9+2 (steps of 2) or 1..64*2 "
            "(doubling)");
  EXPECT_EQ(error_of("1.."), error_of("1..x").replace(error_of("1..x").find("1..x"), 4, "1.."));
  EXPECT_NE(error_of("1..8/2").find("is no range"), std::string::npos);
  EXPECT_NE(error_of("1..8+").find("is no range"), std::string::npos);
}

TEST(SweepValues, RangesMustGrowAndEnd) {
  EXPECT_EQ(
      error_of("8..1"),
      "trainsim: error: --vary k: the range '8..1' ends below its start; write the smaller number first");
  EXPECT_EQ(error_of("1..8*1"),
            "trainsim: error: --vary k: the range '1..8*1' does not grow; '*' needs a factor above 1 and a "
            "start above 0");
  EXPECT_NE(error_of("0..8*2").find("does not grow"), std::string::npos);
  EXPECT_EQ(error_of("1..8+0"),
            "trainsim: error: --vary k: the range '1..8+0' does not grow; '+' needs a step above 0");
  EXPECT_EQ(
      error_of("1..1000000"),
      "trainsim: error: --vary k: the range '1..1000000' has more than 100000 values; take larger steps, "
      "such as '*2'");
  EXPECT_EQ(error_of("1..99999999999999999999*10"),
            "trainsim: error: --vary k: the range '1..99999999999999999999*10' has numbers above 2^53; list "
            "them instead");
}

}  // namespace
}  // namespace trainsim::sweep
