// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/program.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// What of a result is compared with another.
struct Figures {
  /// How sentences call it: "A", "gpt175b", "TP4 PP8".
  std::string name;
  /// What is trained, and on how many GPUs.
  std::string model;
  std::int64_t gpus = 1;
  /// Tokens of the global batch.
  double tokens = 0;
  Seconds step_time = 0;
  /// Mean over ranks, by program::Cause; adds up to step_time.
  std::array<Seconds, program::kCauses> breakdown{};
  double tokens_per_second = 0;
  double mfu = 0;
  double hfu = 0;
  double bubble_ratio = 0;
  double scaling_efficiency = 0;
  Verdict verdict = Verdict::kFits;
  /// Of the fullest rank, and its parts; they add up to it.
  Bytes peak_memory = 0;
  program::MemoryByCategory memory_at_peak{};
};

/// The figures of a result, called `name`.
Figures figures_of(const Summary& summary, std::string name);

/// The same of a result that `to_json` wrote.
Figures figures_of(const std::string& json, std::string name);

/// Where time and memory moved from one result to another. Every number is that of `to` less that of `from`,
/// so the difference of the other direction is the negative of this one, and that of a result to itself is 0.
struct Difference {
  Figures from;
  Figures to;
  /// Whether times are per token, because the two have different numbers of them in a step; else per step.
  bool per_token = false;
  /// Step time, or time per token, of `from`; what shares are of.
  Seconds base = 0;
  Seconds time = 0;
  /// By program::Cause; adds up to `time`.
  std::array<Seconds, program::kCauses> by_cause{};
  Bytes memory = 0;
  /// By program::MemoryCategory; adds up to `memory`.
  program::MemoryByCategory by_category{};

  /// `time` as a share of the step, or of the time per token, of `from`.
  double share() const { return time / base; }
};

/// Takes the difference of two results.
Difference difference(const Figures& from, const Figures& to);

/// The scale (`duration_like`) on which the largest change of a cause has three digits, and at most that of
/// the step.
Seconds change_scale(const Difference& difference);

/// "B takes 7.7 % less time per step than A (16.73 s, not 18.13 s): bubble -0.90 s, recompute -0.40 s, the
/// rest -0.10 s."
std::string time_sentence(const Difference& difference);

/// "The fullest rank of B needs 4.00 GiB less than that of A (60.1 GiB, not 64.1 GiB): activations -5.10 GiB,
/// …" and, if that changes, whether it fits.
std::string memory_sentence(const Difference& difference);

/// Both, and what has to be known to read them: another model, another batch, more or fewer GPUs.
std::vector<std::string> sentences(const Difference& difference);

}  // namespace trainsim::report
