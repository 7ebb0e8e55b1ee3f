// SPDX-License-Identifier: Apache-2.0
#include "sim/base/collective.hpp"

#include <array>
#include <cstddef>

namespace trainsim {

const char* to_string(Algorithm algorithm) {
  static constexpr std::array<const char*, 7> names = {"ring",       "tree",         "in-switch", "nvls-tree",
                                                       "in-network", "hierarchical", "pairs"};
  return names[static_cast<std::size_t>(algorithm)];
}

const char* to_string(WireProtocol protocol) {
  static constexpr std::array<const char*, 3> names = {"simple", "ll", "ll128"};
  return names[static_cast<std::size_t>(protocol)];
}

}  // namespace trainsim
