// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "sim/base/diagnostics.hpp"
#include "sim/training/batch_stages.hpp"
#include "sim/training/spec.hpp"

namespace trainsim::training {

/// What a run must agree with.
struct RunFacts {
  Batch full;
  /// The batch must be a multiple of this, for the reason in words: "micro_batch_size 1 x data_parallel 8".
  std::int64_t batch_unit = 1;
  std::string batch_reason;
};

/// Everything in which a run contradicts itself or the plan, at fields such as
/// "run.rampup_batch_size.start". REQUIRES: what was read is in its range; tokens or steps are given; the
/// full batch is legal.
Problems check(const TrainingSpec& spec, const RunFacts& facts);

}  // namespace trainsim::training
