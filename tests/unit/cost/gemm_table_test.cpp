// SPDX-License-Identifier: Apache-2.0
// The matrix-multiply model against the shapes measured on an A100-PCIe (experiments/validation/README.md).
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/units.hpp"
#include "sim/config/experiment.hpp"
#include "sim/cost/kernel_model.hpp"

namespace trainsim::cost {
namespace {

/// A measured multiply.
struct Row {
  std::string gpu;
  FlopsPerSecond peak = 0;
  MatmulShape shape;
  MatmulOutput output;
  double fraction_of_peak = 0;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

/// Columns: gpu, peak_tflops, batch, m, n, k, layout, accumulate, out_dtype, fraction_of_peak.
Row row_of(const std::vector<std::string>& cells) {
  Row row;
  row.gpu = cells.at(0);
  row.peak = std::stod(cells.at(1)) * kTera;
  row.shape = {std::stoll(cells.at(2)), std::stoll(cells.at(3)), std::stoll(cells.at(4)),
               std::stoll(cells.at(5))};
  row.output = {cells.at(8) == "fp32" ? 4 : 2, cells.at(7) == "True"};
  row.fraction_of_peak = std::stod(cells.at(9));
  return row;
}

std::vector<Row> rows_measured_on(const std::string& gpu) {
  const std::filesystem::path root(TRAINSIM_SOURCE_DIR);
  std::ifstream file(root / "experiments/validation/gemm_efficiency.csv");
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const Row row = row_of(cells_of(line));
    if (row.gpu == gpu) rows.push_back(row);
  }
  return rows;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TEST(GemmTable, TheA100IsModelledWithAMedianErrorOfAtMostEightPercent) {
  const hardware::GpuSpec gpu = config::load_cluster("pcie-a100-8").gpu;
  ASSERT_EQ(gpu.name, "a100-80gb-pcie");
  const std::vector<Row> rows = rows_measured_on("A100-PCIe-80GB");
  ASSERT_EQ(rows.size(), 183U);
  const KernelModel model(gpu, gpu.peak_bf16, 2, 0);
  std::vector<double> errors;
  for (const Row& row : rows) {
    ASSERT_DOUBLE_EQ(row.peak, gpu.peak_bf16);
    const program::Kernel kernel = model.matmul("multiply", row.shape, row.output);
    const Seconds measured = kernel.flops / (row.fraction_of_peak * row.peak);
    errors.push_back(std::abs(kernel.seconds / measured - 1.0));
  }
  RecordProperty("median_error", std::to_string(median(errors)));
  RecordProperty("largest_error", std::to_string(*std::max_element(errors.begin(), errors.end())));
  EXPECT_LE(median(errors), 0.08);
}

}  // namespace
}  // namespace trainsim::cost
