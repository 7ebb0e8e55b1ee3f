// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cost/kernel_model.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/program/program.hpp"
#include "sim/validation/csv_table.hpp"
#include "sim/validation/evaluation.hpp"

namespace trainsim::validation {

/// A measured matrix multiply.
struct MeasuredMatmul {
  std::string gpu;
  cost::MatmulShape shape;
  cost::MatmulOutput output;
  /// Whether each product of the batch has a kernel of its own, as those of experts do.
  bool grouped = false;
  Seconds seconds = 0;
};

/// A measured fused attention kernel (causal mask).
struct MeasuredAttention {
  std::string gpu;
  cost::AttentionShape shape;
  bool backward = false;
  Seconds seconds = 0;
};

/// Time that a collective over the first GPUs of a cluster took, for a tensor of `bytes`.
struct MeasuredCollective {
  std::string cluster;
  std::int64_t gpus = 0;
  double bytes = 0;
  Seconds seconds = 0;
  program::CollectiveOp op = program::CollectiveOp::kAllReduce;
};

/// Time of a kernel that reads and writes `bytes` of GPU memory in all, and does nothing else.
struct MeasuredStream {
  std::string gpu;
  double bytes = 0;
  Seconds seconds = 0;
};

/// What a table of measurements holds.
struct MeasuredTable {
  std::vector<MeasuredMatmul> matmuls;
  std::vector<MeasuredAttention> attentions;
  std::vector<MeasuredCollective> collectives;
  std::vector<MeasuredStream> streams;
};

/// Reads a table, whose kind shows in its header (docs/validation.md). Problems are reported with their line,
/// and the lines left out.
MeasuredTable read_table(const std::filesystem::path& file, config::Report& report);

/// Time of a kernel by the kernel model of `gpu` in bf16.
Seconds simulated(const MeasuredMatmul& row, const hardware::GpuSpec& gpu);
Seconds simulated(const MeasuredAttention& row, const hardware::GpuSpec& gpu);
Seconds simulated(const MeasuredStream& row, const hardware::GpuSpec& gpu);

}  // namespace trainsim::validation
