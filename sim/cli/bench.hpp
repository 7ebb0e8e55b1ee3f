// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/report/bench.hpp"

namespace trainsim::cli {

/// What `trainsim bench` was asked for; empty texts are left open.
struct BenchRequest {
  std::string cluster;
  std::vector<std::string> overrides;
  /// "all_reduce", "all_gather", "reduce_scatter", "broadcast" or "all_to_all".
  std::string op;
  /// "1 MiB..1 GiB", doubling; "1 MiB..1 GiB*4"; or a list, "8 B, 1 MiB".
  std::string sizes;
  /// Number of GPUs; 0 = one node, or as many as the compared output names.
  std::int64_t gpus = 0;
  /// Output of a program of nccl-tests to compare with.
  std::string compare;
};

/// Simulates what nccl-tests would measure. Throws InputError.
report::Bench run_bench(const BenchRequest& request);

/// The sizes that a text means, in bytes. Throws InputError that names `--sizes`.
std::vector<double> parse_sizes(const std::string& text);

}  // namespace trainsim::cli
