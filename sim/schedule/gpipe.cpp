// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/phases.hpp"

namespace trainsim::schedule {

Schedule gpipe(std::int64_t stages, std::int64_t micro_batches) {
  return phased(stages, 1, micro_batches, [=](std::int64_t) { return micro_batches; });
}

}  // namespace trainsim::schedule
