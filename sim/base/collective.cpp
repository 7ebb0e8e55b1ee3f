// SPDX-License-Identifier: Apache-2.0
#include "sim/base/collective.hpp"

#include <array>
#include <cstddef>

namespace trainsim {

const char* to_string(Algorithm algorithm) {
  static constexpr std::array<const char*, 3> kNames = {"ring", "tree", "in-switch"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

const char* to_string(WireProtocol protocol) {
  static constexpr std::array<const char*, 3> kNames = {"simple", "ll", "ll128"};
  return kNames[static_cast<std::size_t>(protocol)];
}

}  // namespace trainsim
