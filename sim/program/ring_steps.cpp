// SPDX-License-Identifier: Apache-2.0
#include "sim/program/ring_steps.hpp"

#include <algorithm>
#include <cmath>

namespace trainsim::program {

Seconds RingSteps::added_latency() const {
  if (count == 0) return 0;
  // Once round are size - 1 steps; an all-reduce goes round twice.
  const std::int64_t between = count / (size - 1) * (nodes - 1);
  return static_cast<double>(count - between) * latency + static_cast<double>(between) * node_latency;
}

Seconds RingSteps::time(Seconds inside, Seconds between) const {
  const auto steps = static_cast<double>(count);
  if (count == 0) return std::max(inside, between);
  if (nodes == 1) return inside + steps * latency;
  if (nodes == size) return between + steps * node_latency;
  const Seconds slowest = std::max(inside, between);
  // What going on over an edge costs more than waiting for a step at the slowest one.
  const Seconds more_inside = latency - (slowest - inside) / steps;
  const Seconds more_between = node_latency - (slowest - between) / steps;
  const auto more = [&](double over_inside, double over_between) {
    return over_inside * more_inside + over_between * more_between;
  };
  // Every `spacing` edges one leads to another node. A way is worth most if it begins and ends with edges of
  // the kind that costs more, and goes on always, or as little as it can.
  const double spacing = static_cast<double>(size) / static_cast<double>(nodes);
  const double run = spacing - 1.0;
  const double most = std::floor((steps - 1.0) / spacing) + 1.0;
  const double fewest = std::floor(steps / spacing);
  const double runs = std::floor((steps + 1.0) / spacing);
  return slowest +
         std::max({more(steps - most, most), more(steps - fewest, fewest), more((most - 1.0) * run, most),
                   more(runs * run, runs - 1.0), more(0, 1.0), more(run, 0)});
}

}  // namespace trainsim::program
