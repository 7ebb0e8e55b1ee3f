// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/nccl_tests.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace trainsim::validation {
namespace {

std::vector<MeasuredCollective> read(const std::string& text, config::Report& report) {
  const tests::TemporaryFolder folder;
  return read_nccl_tests(folder.write("nccl.txt", text), "box", report);
}

const std::string kProgram = "# Collective test starting: all_reduce_perf\n";
const std::string kRanks =
    "#  Rank  0 Group  0 Pid   1 on      node device  0 [0x07] NVIDIA A100\n"
    "#  Rank  1 Group  0 Pid   2 on      node device  1 [0x0b] NVIDIA A100\n";
/// Written as nccl-tests 2.13 does.
const std::string kResults =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)\n"
    "     1048576        262144     float     sum      -1    44.20   23.72   23.72      0    44.61   23.51   "
    "23.51      0\n"
    "     2097152        524288     float     sum      -1    53.40   39.27   39.27      0    53.70   39.05   "
    "39.05      0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 31.38\n";

TEST(NcclTests, OutOfPlaceTimesBySize) {
  config::Report report;
  const auto results = read(kProgram + kRanks + kResults, report);
  ASSERT_TRUE(report.empty()) << report.text();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].gpus, 2);
  EXPECT_EQ(results[0].bytes, 1048576);
  EXPECT_DOUBLE_EQ(results[1].seconds, 53.4e-6);
  EXPECT_EQ(results[0].op, program::CollectiveOp::kAllReduce);
  EXPECT_EQ(results[0].cluster, "box");
}

TEST(NcclTests, OtherOperationsSayTheirName) {
  config::Report report;
  const auto results = read("# Collective test starting: all_gather_perf\n" + kRanks + kResults, report);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].op, program::CollectiveOp::kAllGather);
}

TEST(NcclTests, AnAllReduceOfMoreThanTwoIsKnownByItsBusBandwidth) {
  config::Report report;
  const std::string more =
      "#  Rank  2 Group  0 Pid   3 on node device  2\n#  Rank  3 Group  0 Pid   4 on node\n";
  const auto results = read(kRanks + more + "1048576 262144 float sum -1 50.00 20.97 31.46 0 50.1\n", report);
  ASSERT_TRUE(report.empty()) << report.text();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].gpus, 4);
}

TEST(NcclTests, OlderOutputHasTheTimeInAnEarlierColumn) {
  config::Report report;
  const auto results = read("# Collective test starting: all_gather_perf\n" + kRanks +
                                "#       size         count    type     time   algbw   busbw  error\n"
                                "1048576 262144 float 50.00 20.97 10.49 0e+00\n",
                            report);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_DOUBLE_EQ(results[0].seconds, 50e-6);
}

TEST(NcclTests, OutputsOfSeveralRunsInOneFileKeepTheirRanks) {
  config::Report report;
  const std::string run = kProgram + "# Using devices\n" + kRanks;
  const std::string third = "#  Rank  2 Group  0 Pid   3 on node device  2\n";
  const auto results = read(run + kResults + run + third + kResults, report);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[1].gpus, 2);
  EXPECT_EQ(results[2].gpus, 3);
}

TEST(NcclTests, WhatCannotBeReadIsReported) {
  const auto problem = [](const std::string& text) {
    config::Report report;
    EXPECT_TRUE(read(text, report).empty());
    return report.text();
  };
  EXPECT_NE(problem("hello\n").find("no line with a size and a time"), std::string::npos);
  EXPECT_NE(problem(kProgram + kResults).find("says how many GPUs took part"), std::string::npos);
  EXPECT_NE(problem(kRanks + kResults).find("no line above says which program this is"), std::string::npos);
  EXPECT_NE(problem("# Collective test starting: gather_perf\n" + kRanks + kResults)
                .find("results of 'gather_perf' are not simulated"),
            std::string::npos);
  EXPECT_NE(problem(kProgram + kRanks + "1048576 262144 float sum -1 inf 20.97 31.46 0 50.1\n")
                .find("no line with a size and a time"),
            std::string::npos);
}

}  // namespace
}  // namespace trainsim::validation
