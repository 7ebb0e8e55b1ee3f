// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <vector>

#include "sim/config/report.hpp"
#include "sim/validation/kernel_table.hpp"

namespace trainsim::validation {

/// Reads what a program of nccl-tests (all_reduce_perf, all_gather_perf, reduce_scatter_perf) printed:
/// out-of-place times by size. The operation is that of its line "Collective test starting", else all-reduce;
/// the number of GPUs is that of its "Rank" lines. Reports a text without results, or whose number of GPUs
/// can't be told. `cluster` is written into the results.
std::vector<MeasuredCollective> read_nccl_tests(const std::filesystem::path& file, const std::string& cluster,
                                                config::Report& report);

}  // namespace trainsim::validation
