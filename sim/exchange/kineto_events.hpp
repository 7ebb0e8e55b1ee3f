// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace trainsim::exchange {

/// Kinds of parallel groups whose communication is part of forward and backward.
struct InnerGroups {
  bool tensor = false;
  bool context = false;
  bool expert = false;
};

/// A stretch of time in microseconds.
struct Stretch {
  double begin = 0;
  double end = 0;
};

struct TracedKernel {
  Stretch time;
  /// What its launch has too; nothing where the trace does not say.
  std::optional<std::int64_t> correlation;
  /// Whether it is communication of an inner group.
  bool collective = false;
};

/// A call of the host that launched something.
struct Launch {
  double time = 0;
  std::size_t thread = 0;
};

/// What a trace of Kineto holds, as far as it matters for the times of passes.
struct KinetoTrace {
  std::optional<std::int64_t> rank;
  /// Ranks of the job.
  std::optional<std::int64_t> world_size;
  /// Of a GPU: kernels, memory that is set or copied on it, and collectives of inner groups.
  std::vector<TracedKernel> kernels;
  /// By correlation.
  std::unordered_map<std::int64_t, Launch> launches;
  /// Operations of the autograd engine, by thread.
  std::unordered_map<std::size_t, std::vector<Stretch>> backward;
  /// As ProfilerStep#N says.
  std::vector<Stretch> steps;
  /// Whose communication is among the kernels.
  InnerGroups found;
  /// Collectives of other groups.
  std::size_t left_out = 0;
  /// Events whose times cannot be read.
  std::size_t unreadable = 0;
};

/// Parses a trace without keeping its events, which may be millions. Collectives of groups in `inner` are
/// kernels. Throws InputError, without file name, for text that is no JSON to its end.
KinetoTrace parse_kineto_trace(const std::string& text, const InnerGroups& inner);

}  // namespace trainsim::exchange
