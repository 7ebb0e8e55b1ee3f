// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/exchange/shell.hpp"

namespace trainsim::exchange {

/// What a launcher says of the size of a job.
struct Launch {
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> gpus_per_node;
  /// The number of GPUs; nothing when one of the two is not known.
  std::optional<std::int64_t> gpus() const;
  /// For comments: "torchrun --nnodes 4 --nproc-per-node 8".
  std::string origin;
  /// Values that only a running shell knows.
  std::vector<std::string> open;
  /// Options whose value is no number, and this value.
  std::vector<std::pair<std::string, std::string>> wrong;
};

/// Nodes (torchrun's default is one) and GPUs per node as torchrun, torch.distributed.launch, srun, sbatch or
/// deepspeed are given them.
Launch find_launch(const ShellScript& script);

}  // namespace trainsim::exchange
