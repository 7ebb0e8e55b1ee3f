// SPDX-License-Identifier: Apache-2.0
// The models of kernels against the measured tables (experiments/validation/README.md).
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/config/experiment.hpp"
#include "sim/validation/kernel_table.hpp"
#include "sim/validation/statistics.hpp"

namespace trainsim::validation {
namespace {

MeasuredTable read(const std::string& name) {
  config::Report report;
  MeasuredTable table =
      read_table(std::filesystem::path(TRAINSIM_SOURCE_DIR) / "experiments/validation" / name, report);
  EXPECT_TRUE(report.empty()) << report.text();
  return table;
}

/// Errors of the rows that were measured on one GPU.
template <class Measured>
ErrorStatistics errors_on(const std::string& gpu, const std::vector<Measured>& rows) {
  const hardware::GpuSpec spec = config::load_gpu(gpu);
  std::vector<Pair> pairs;
  for (const Measured& row : rows) {
    if (row.gpu == gpu) pairs.push_back({row.seconds, simulated(row, spec)});
  }
  return error_statistics(pairs);
}

TEST(KernelTables, MultipliesHaveAMedianErrorOfAtMostEightPercent) {
  const MeasuredTable table = read("gemm_efficiency.csv");
  const ErrorStatistics a100 = errors_on("a100-80gb-pcie", table.matmuls);
  EXPECT_EQ(a100.rows, 183U);
  EXPECT_LE(a100.median, 0.08);
  const ErrorStatistics b200 = errors_on("b200", table.matmuls);
  EXPECT_EQ(b200.rows, 514U);
  EXPECT_LE(b200.median, 0.08);
}

TEST(KernelTables, GroupsOfMultipliesHaveAMedianErrorOfAtMostTenPercent) {
  const MeasuredTable table = read("grouped_gemm_efficiency.csv");
  const ErrorStatistics b200 = errors_on("b200", table.matmuls);
  EXPECT_EQ(b200.rows, 108U);
  EXPECT_LE(b200.median, 0.10);
}

TEST(KernelTables, AttentionHasAMeanErrorOfAtMostTenPercent) {
  const MeasuredTable table = read("attention_efficiency.csv");
  const ErrorStatistics a100 = errors_on("a100-80gb-pcie", table.attentions);
  EXPECT_EQ(a100.rows, 24U);
  EXPECT_LE(a100.mean, 0.10);
  const ErrorStatistics b200 = errors_on("b200", table.attentions);
  EXPECT_EQ(b200.rows, 64U);
  EXPECT_LE(b200.mean, 0.10);
}

}  // namespace
}  // namespace trainsim::validation
