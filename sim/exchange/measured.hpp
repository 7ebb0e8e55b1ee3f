// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {

/// Seconds that one step takes on one rank, all of its micro-batches.
struct StepTimes {
  Seconds forward = 0;
  /// Weight gradients and recomputation included.
  Seconds backward = 0;
  /// The optimizer's step without communication; 0 where nobody knows.
  Seconds optimizer = 0;
};

/// What a log or a trace measured.
struct Measurement {
  /// Whose times `times` are.
  enum class Ranks {
    /// Of the ranks that are named.
    kNamed,
    /// Of ranks that nobody names, under 0, 1, ….
    kUnnamed,
    /// The shortest and the longest of all ranks, under 0 and 1.
    kRange,
    /// The longest of all ranks, under 0.
    kLongest,
    /// Of the last rank, under 0, as Megatron-LM of before 2023 printed them.
    kLast,
  };
  /// The file.
  std::string source;
  Ranks ranks = Ranks::kNamed;
  std::map<std::int64_t, StepTimes> times;
  /// Sequences per step, where the source says so.
  std::optional<std::int64_t> global_batch_size;
  /// Ranks of the measured job, where the source says so.
  std::optional<std::int64_t> world_size;
  /// What was measured: "forward-compute and backward-compute", "kernels".
  std::string what;
  /// Of what the times are the median: "9 reports", "3 steps".
  std::string samples;
  /// What to know of them, as sentences without full stop.
  std::vector<std::string> notes;
};

/// The median of step times, pass by pass; of at least one step. Of optimizers those count that are known.
StepTimes median(const std::vector<StepTimes>& steps);

/// Several measurements as one: all ranks of traces, or of logs, that the last file is one of. Of
/// measurements that exclude each other the later counts, and its notes say what is left out. REQUIRES: there
/// are some.
Measurement joined(std::vector<Measurement> measurements);

/// Sets plan.profile from times of whole steps, by what the translation says of the plan: how many
/// micro-batches a step has, and which stage a rank holds. Throws InputError where it does not say enough.
void translate_measured(const Measurement& measured, Translation& translation);

}  // namespace trainsim::exchange
