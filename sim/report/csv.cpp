// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/csv_cells.hpp"
#include "sim/report/sweep_rows.hpp"
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

std::vector<sweep::Cell> scalar_cells(const Summary& summary) {
  const plan::ParallelPlan& plan = summary.plan;
  const auto count = [](const char* name, std::int64_t value) {
    return sweep::Cell{name, std::to_string(value), sweep::CellKind::kBare};
  };
  const auto real = [](const char* name, double value) {
    return sweep::Cell{name, exact(value), sweep::CellKind::kBare};
  };
  std::vector<sweep::Cell> cells = {{"name", summary.name, sweep::CellKind::kText},
                                    count("gpus", plan.gpus),
                                    count("tensor_parallel", plan.tensor_parallel),
                                    count("pipeline_parallel", plan.pipeline_parallel),
                                    count("virtual_pipeline", plan.virtual_pipeline),
                                    count("data_parallel", plan.data_parallel),
                                    count("micro_batch_size", plan.micro_batch_size),
                                    count("global_batch_size", plan.global_batch_size),
                                    real("step_time_s", summary.step_time),
                                    real("tokens_per_s", summary.tokens_per_second),
                                    real("tokens_per_s_per_gpu", summary.tokens_per_second_per_gpu),
                                    real("samples_per_s", summary.samples_per_second),
                                    real("model_tflops_per_gpu", summary.model_tflops_per_gpu),
                                    real("hardware_tflops_per_gpu", summary.hardware_tflops_per_gpu),
                                    real("mfu", summary.mfu),
                                    real("hfu", summary.hfu),
                                    real("bubble_ratio", summary.bubble_ratio),
                                    real("bubble_ratio_stage", summary.bubble_ratio_stage),
                                    summary.bubble_ratio_theory
                                        ? real("bubble_ratio_theory", *summary.bubble_ratio_theory)
                                        : sweep::Cell{"bubble_ratio_theory", "", sweep::CellKind::kNone},
                                    real("scaling_efficiency", summary.scaling_efficiency),
                                    {"fits", summary.fits ? "true" : "false", sweep::CellKind::kBare},
                                    {"verdict", to_string(summary.verdict), sweep::CellKind::kText},
                                    count("peak_memory_bytes", summary.peak_memory),
                                    count("peak_reserved_bytes", summary.peak_reserved),
                                    count("memory_headroom_bytes", summary.memory_headroom)};
  for (std::size_t c = 0; c < summary.breakdown.size(); ++c) {
    std::string name = "breakdown_";
    name += program::to_string(static_cast<program::Cause>(c));
    name += "_s";
    cells.push_back(real(name.c_str(), summary.breakdown[c]));
  }
  for (sweep::Cell& cell : training_cells(summary)) cells.push_back(std::move(cell));
  return cells;
}

std::string to_csv(const Summary& summary) {
  const std::vector<sweep::Cell> cells = scalar_cells(summary);
  return csv_header(cells) + "\n" + csv_line(cells) + "\n";
}

}  // namespace trainsim::report
