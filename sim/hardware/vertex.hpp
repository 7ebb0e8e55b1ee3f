// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace trainsim::hardware {

/// What a vertex of the topology graph is.
enum class VertexKind : std::uint8_t {
  kGpu,
  /// NVSwitches of a node, or its only PCIe root.
  kNodeSwitch,
  kPcieSwitch,
  kCpu,
  kNic,
  kLeaf,
  /// A spine, or all spines of a pod that share its traffic evenly.
  kSpine,
  kSpineLayer,
  kCore,
  kCoreLayer,
  kRouter,
};

/// Vertex: its kind and its number among those of that kind.
struct Vertex {
  VertexKind kind = VertexKind::kGpu;
  std::int64_t index = 0;

  bool operator==(const Vertex&) const = default;
};

/// Name for people, such as "gpu 3".
std::string to_string(const Vertex& vertex);

}  // namespace trainsim::hardware
