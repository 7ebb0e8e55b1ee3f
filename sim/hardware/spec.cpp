// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/spec.hpp"

#include <cmath>

namespace trainsim::hardware {

double GpuSpec::clock_share() const {
  if (power_limit >= rated_power) return 1.0;
  return std::cbrt((power_limit - static_power) / (rated_power - static_power));
}

}  // namespace trainsim::hardware
