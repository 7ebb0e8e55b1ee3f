// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/training/batch_stages.hpp"

namespace trainsim::training {

/// Failures of a whole job.
struct Hazard {
  /// Mean time between two failures, and from a failure until training goes on.
  Seconds mtbf = 0;
  Seconds restart = 0;
};

/// The interval between checkpoints that loses least to first order, sqrt(2 C M), for checkpoints that stop
/// training for `stall` (C). Young 1974, Communications of the ACM 17(9).
Seconds young_interval(Seconds stall, const Hazard& hazard);

/// The same to higher order: sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C if C < 2 M, else M.
/// Daly 2006, Future Generation Computer Systems 22(3).
Seconds daly_interval(Seconds stall, const Hazard& hazard);

/// Mean time until `stretch` seconds have passed without a failure, if it is begun anew after each, when a
/// restart is through (and is itself begun anew if it fails): M exp(R/M) (exp(stretch/M) - 1). Daly 2006.
Seconds expected_time(Seconds stretch, const Hazard& hazard);

/// Times of a step of each size.
struct TimedStage {
  BatchStage stage;
  Seconds step_time = 0;
};

/// When checkpoints are made, and what each costs.
struct Checkpoints {
  /// Steps between two.
  std::int64_t interval = 1;
  /// How long training stops, and after how long the checkpoint can be relied on. The former is the shorter
  /// one if writing goes on beside training.
  Seconds stall = 0;
  Seconds write = 0;
};

/// Equal stretches in a row: from one checkpoint to the end of the next one.
struct Segments {
  std::int64_t count = 0;
  /// Seconds of steps, and seconds that training stops at the end.
  Seconds work = 0;
  Seconds stall = 0;
};

/// A run cut at its checkpoints; the last one, after the last step, is waited for until it is written. If
/// writing takes longer than to the next checkpoint, training waits for the rest.
std::vector<Segments> segments(const std::vector<TimedStage>& stages, const Checkpoints& checkpoints);

/// Wall time of a run without failures.
Seconds failure_free_time(const std::vector<Segments>& segments);

/// Mean wall time with failures, for checkpoints that training waits for.
Seconds expected_time(const std::vector<Segments>& segments, const Hazard& hazard);

}  // namespace trainsim::training
