// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/merge.hpp"

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::sweep {
namespace {

std::string line(int point, int points, const std::string& sweep = "0123456789abcdef") {
  return "{\"v\":" + std::to_string(10 * point) + ",\"point\":" + std::to_string(point) +
         ",\"points\":" + std::to_string(points) + ",\"sweep\":\"" + sweep + "\"}\n";
}

std::string csv(const std::vector<int>& points, int count) {
  std::string text = "v,point,points,sweep\n";
  for (const int point : points) {
    text += std::to_string(10 * point) + "," + std::to_string(point) + ",";
    text += std::to_string(count) + ",0123456789abcdef\n";
  }
  return text;
}

std::string merged(const std::vector<RowFile>& files) {
  try {
    return file_text(merge(files));
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Merge, PutsShardsInTheOrderOfPoints) {
  EXPECT_EQ(merged({{"b", line(2, 5) + line(4, 5)}, {"a", line(1, 5) + line(3, 5) + line(5, 5)}}),
            line(1, 5) + line(2, 5) + line(3, 5) + line(4, 5) + line(5, 5));
}

TEST(Merge, KeepsOneHeader) {
  EXPECT_EQ(merged({{"b", csv({2}, 3)}, {"a", csv({1, 3}, 3)}}), csv({1, 2, 3}, 3));
}

TEST(Merge, EmptyShardsAreFine) {
  EXPECT_EQ(merged({{"a", line(1, 1)}, {"b", ""}}), line(1, 1));
  EXPECT_EQ(merged({{"a", csv({1}, 1)}, {"b", csv({}, 1)}}), csv({1}, 1));
}

TEST(Merge, TheSameFileTwiceDoesNoHarm) {
  EXPECT_EQ(merged({{"a", line(1, 1)}, {"a", line(1, 1)}}), line(1, 1));
}

TEST(Merge, MissingShardsAreNamed) {
  EXPECT_EQ(merged({{"a", line(1, 6) + line(4, 6)}, {"c", line(3, 6) + line(6, 6)}}),
            "trainsim: error: 2 of 6 points are missing: 2, 5; the file of shard 2/3 is not among these");
  EXPECT_EQ(
      merged({{"a", line(1, 6) + line(4, 6)}}),
      "trainsim: error: 4 of 6 points are missing: 2, 3, 5, 6; the files of shards 2/3, 3/3 are not among "
      "these");
}

TEST(Merge, UnfinishedShardsAreRefused) {
  EXPECT_EQ(merged({{"a", line(1, 4) + line(3, 4)}, {"b", line(2, 4)}}),
            "trainsim: error: 1 of 4 points are missing: 4; finish its sweep with --resume");
  EXPECT_EQ(
      merged({{"a", line(1, 2) + line(2, 2).substr(0, 9)}}),
      "trainsim: error: 'a' ends in the middle of a row; repeat its sweep with --resume, which goes on from "
      "there");
}

TEST(Merge, DifferentSweepsAreRefused) {
  const std::string words =
      " hold rows of different sweeps (another configuration, --set, varied values or version of trainsim); "
      "merge "
      "the shards of one";
  EXPECT_EQ(merged({{"a", line(1, 2)}, {"b", line(2, 2, "fedcba9876543210")}}),
            "trainsim: error: 'a' and 'b'" + words);
  EXPECT_EQ(merged({{"a", line(1, 2)}, {"b", line(2, 3)}}), "trainsim: error: 'a' and 'b'" + words);
}

TEST(Merge, DifferentFormsAreRefused) {
  EXPECT_EQ(
      merged({{"a", line(1, 2)}, {"b", csv({2}, 2)}}),
      "trainsim: error: 'a' and 'b' are of different formats (JSON Lines and CSV); write all shards in one");
  EXPECT_EQ(merged({{"a", csv({1}, 2)}, {"b", "w" + csv({2}, 2)}}),
            "trainsim: error: 'a' and 'b' have different columns, so they are of different sweeps");
}

TEST(Merge, ContradictionsAreRefused) {
  std::string other = line(1, 1);
  other.replace(other.find("10"), 2, "11");
  EXPECT_EQ(
      merged({{"a", line(1, 1)}, {"b", other}}),
      "trainsim: error: 'b' has another result for point 1 than a file before it; remove the older one");
}

TEST(Merge, NoRowsAtAllAreRefused) {
  EXPECT_EQ(
      merged({{"a", ""}}),
      "trainsim: error: there are no rows in these files; name those that trainsim sweep --shard wrote");
}

}  // namespace
}  // namespace trainsim::sweep
