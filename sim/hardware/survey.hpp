// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/topology.hpp"

namespace trainsim::hardware {

/// GPUs that the first one reaches in the same way.
struct Distance {
  /// How many there are, and the first of them.
  std::int64_t gpus = 0;
  std::int64_t nearest = 0;
  /// Devices on the way, both ends included.
  std::vector<Vertex> way;
  Seconds latency = 0;
  /// Of the slowest link, and which it is.
  BytesPerSecond bandwidth = 0;
  std::string slowest;
};

/// A group of nodes whose NICs are plugged into the same switches.
struct Block {
  std::int64_t first_node = 0;
  std::int64_t nodes = 0;
  std::vector<std::size_t> switches;
};

/// What there is to know about a topology at a glance.
struct Survey {
  std::int64_t nodes = 0;
  /// Bandwidth that the first half of the nodes can send to the second at once, found as a maximal flow, and
  /// what their NICs could send; 0 for a single node.
  BytesPerSecond bisection = 0;
  BytesPerSecond injection = 0;
  /// How GPU 0 reaches the others, nearest first.
  std::vector<Distance> distances;
  std::vector<Block> blocks;
};

/// Looks at a topology, from GPU 0 to each of the first `gpus`.
Survey survey(const Topology& topology, const ClusterSpec& spec, std::int64_t gpus);

}  // namespace trainsim::hardware
