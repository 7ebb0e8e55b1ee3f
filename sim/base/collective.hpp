// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace trainsim {

/// How the members of a collective pass data on.
enum class Algorithm : std::uint8_t {
  /// Every member sends to the next one of a ring.
  kRing,
  /// A chain inside each node and two binary trees over the nodes; all-reduces only.
  kTree,
  /// The switch of a node adds up what the members send it (NVLink SHARP); all-reduces only.
  kInSwitch,
  /// The same inside each node, and two binary trees over the nodes; all-reduces only.
  kNvlsTree,
  /// The switches between nodes add up what the nodes send them (SHARP); all-reduces only.
  kInNetwork,
  /// One after the other: reduce-scatter inside each node, all-reduce between nodes of the share that each
  /// member then holds, all-gather inside each node; all-reduces only, and never unless forced.
  kHierarchical,
  /// Members send to each other directly: all-to-all, and shifts around a ring.
  kPairs,
};
/// Name for configurations and tables: "ring", "tree", "in-switch", "nvls-tree", "in-network",
/// "hierarchical", "pairs".
const char* to_string(Algorithm algorithm);

/// How NCCL puts bytes on the wire.
enum class WireProtocol : std::uint8_t {
  /// Whole chunks with a synchronisation each; for large messages.
  kSimple,
  /// A flag with every word; for the smallest messages.
  kLl,
  /// 8 bytes of flags in 128.
  kLl128,
};
/// Name for configurations and tables: "simple", "ll", "ll128".
const char* to_string(WireProtocol protocol);

}  // namespace trainsim
