// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/vertex.hpp"

#include <array>
#include <cstddef>

namespace trainsim::hardware {

std::string to_string(const Vertex& vertex) {
  static constexpr std::array<const char*, 11> names = {"gpu",  "node switch", "pcie switch", "cpu",
                                                        "nic",  "leaf",        "spine",       "spine layer",
                                                        "core", "core layer",  "router"};
  return names[static_cast<std::size_t>(vertex.kind)] + (" " + std::to_string(vertex.index));
}

}  // namespace trainsim::hardware
