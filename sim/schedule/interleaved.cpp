// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/phases.hpp"

namespace trainsim::schedule {

Schedule interleaved(std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches) {
  // The rule below would double a single chunk's warm-up; Megatron-LM keeps plain 1F1B for it too.
  if (chunks == 1) return one_f_one_b(stages, micro_batches);
  return phased(stages, chunks, micro_batches, [=](std::int64_t stage) {
    const std::int64_t passes = chunks * micro_batches;
    // A single group of micro-batches: Megatron-LM runs all forwards first on every stage.
    if (micro_batches == stages) return passes;
    // Every chunk but the last runs its first group of p; then two forwards per later stage cover the way of
    // the first micro-batch to the last stage and back.
    return std::min(passes, 2 * (stages - stage - 1) + (chunks - 1) * stages);
  });
}

}  // namespace trainsim::schedule
