// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/csv_cells.hpp"
#include "sim/report/training.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::report {

std::string exact(double value) {
  std::array<char, 40> text{};
  for (const int digits : {15, 16, 17}) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
    double back = 0;
    if (std::sscanf(text.data(), "%lf", &back) == 1 && back == value) break;
  }
  return text.data();
}

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string to_csv(const Summary& summary) {
  const plan::ParallelPlan& plan = summary.plan;
  const std::vector<std::pair<std::string, std::string>> columns = {
      {"name", cell(summary.name)},
      {"gpus", std::to_string(plan.gpus)},
      {"tensor_parallel", std::to_string(plan.tensor_parallel)},
      {"pipeline_parallel", std::to_string(plan.pipeline_parallel)},
      {"virtual_pipeline", std::to_string(plan.virtual_pipeline)},
      {"data_parallel", std::to_string(plan.data_parallel)},
      {"micro_batch_size", std::to_string(plan.micro_batch_size)},
      {"global_batch_size", std::to_string(plan.global_batch_size)},
      {"step_time_s", exact(summary.step_time)},
      {"tokens_per_s", exact(summary.tokens_per_second)},
      {"tokens_per_s_per_gpu", exact(summary.tokens_per_second_per_gpu)},
      {"samples_per_s", exact(summary.samples_per_second)},
      {"model_tflops_per_gpu", exact(summary.model_tflops_per_gpu)},
      {"hardware_tflops_per_gpu", exact(summary.hardware_tflops_per_gpu)},
      {"mfu", exact(summary.mfu)},
      {"hfu", exact(summary.hfu)},
      {"bubble_ratio", exact(summary.bubble_ratio)},
      {"bubble_ratio_stage", exact(summary.bubble_ratio_stage)},
      {"bubble_ratio_theory", summary.bubble_ratio_theory ? exact(*summary.bubble_ratio_theory) : ""},
      {"scaling_efficiency", exact(summary.scaling_efficiency)},
      {"fits", summary.fits ? "true" : "false"},
      {"peak_memory_bytes", std::to_string(summary.peak_memory)},
      {"memory_headroom_bytes", std::to_string(summary.memory_headroom)}};
  std::string header;
  std::string row;
  for (const auto& [name, value] : columns) {
    header += (header.empty() ? "" : ",") + name;
    row += (row.empty() ? "" : ",") + value;
  }
  for (std::size_t c = 0; c < summary.breakdown.size(); ++c) {
    header += std::string(",breakdown_") + program::to_string(static_cast<program::Cause>(c)) + "_s";
    row += "," + exact(summary.breakdown[c]);
  }
  for (const auto& [name, value] : training_cells(summary)) {
    header.append(",").append(name);
    row.append(",").append(value);
  }
  return header + "\n" + row + "\n";
}

}  // namespace trainsim::report
