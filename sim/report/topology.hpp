// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "sim/hardware/survey.hpp"

namespace trainsim::report {

/// A cluster looked at.
struct TopologyReport {
  const hardware::ClusterSpec& cluster;
  std::int64_t gpus = 0;
  const hardware::Topology& topology;
  hardware::Survey survey;
};

/// A summary for people.
std::string to_text(const TopologyReport& report);
/// JSON that ends in a newline; bandwidths in bytes per second, latencies in seconds.
std::string to_json(const TopologyReport& report);
/// A drawing in Graphviz's language: nodes with the same switches as one box, all switches above them, and
/// what is inside a node.
std::string to_dot(const TopologyReport& report);

}  // namespace trainsim::report
