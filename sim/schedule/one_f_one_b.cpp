// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/schedule/phases.hpp"

namespace trainsim::schedule {

Schedule one_f_one_b(std::int64_t stages, std::int64_t micro_batches) {
  return phased(stages, 1, micro_batches,
                [=](std::int64_t stage) { return std::min(micro_batches, stages - 1 - stage); });
}

}  // namespace trainsim::schedule
