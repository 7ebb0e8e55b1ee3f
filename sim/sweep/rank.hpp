// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "sim/sweep/sweep.hpp"

namespace trainsim::sweep {

/// Value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// A shard, and what said so.
struct DetectedShard {
  Shard shard;
  /// "Slurm array task 3", "MPI rank 2".
  std::string source;
};

/// The shard that this process is to run according to what started it: a task of a Slurm array
/// (SLURM_ARRAY_TASK_ID with _COUNT, _MIN, _MAX and _STEP), a rank of Open MPI (OMPI_COMM_WORLD_RANK, _SIZE),
/// of another MPI (PMI_RANK, PMI_SIZE) or of srun (SLURM_PROCID with SLURM_STEP_NUM_TASKS or SLURM_NTASKS).
/// Ranks in tasks of an array are numbered through. Nothing when there is one process only; the script of a
/// batch job, which has the variables of a rank and is none, counts as that. Throws InputError when
/// variables make no sense, or the numbers of an array have gaps that can't be counted.
std::optional<DetectedShard> detect_shard(const Environment& environment);

/// Reads `--shard K/N`; with "auto" for K the position comes from the environment: PARALLEL_SEQ of GNU
/// parallel, or what detect_shard() finds if it has N ranks. Throws InputError.
DetectedShard parse_shard(const std::string& text, const Environment& environment);

}  // namespace trainsim::sweep
