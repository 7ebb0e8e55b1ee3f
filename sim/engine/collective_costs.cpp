// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/collective_costs.hpp"

#include <algorithm>

#include "sim/engine/flow_time.hpp"

namespace trainsim::engine {

const LoneCost& CollectiveCosts::of(std::size_t group, program::CollectiveOp op, double bytes) {
  std::vector<LoneCost>& known = known_[group];
  const auto found = std::find_if(known.begin(), known.end(), [op, bytes](const LoneCost& entry) {
    return entry.op == op && entry.bytes == bytes;
  });
  if (found != known.end()) return *found;
  const program::Group& members = job_.groups[group];
  const program::CollectiveCost cost =
      program::collective_cost(members, op, bytes, member_links(job_, members));
  known.push_back({op, bytes, cost, lone_collective_time(job_, members, cost),
                   private_collective_time(job_, members, cost)});
  return known.back();
}

}  // namespace trainsim::engine
