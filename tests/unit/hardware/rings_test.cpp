// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/rings.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace trainsim::hardware {
namespace {

using Cables = std::vector<std::vector<std::int64_t>>;

Cables full_mesh(std::size_t gpus) {
  Cables cables(gpus, std::vector<std::int64_t>(gpus, 1));
  for (std::size_t i = 0; i < gpus; ++i) cables[i][i] = 0;
  return cables;
}

/// Each ring visits every GPU once, and no direction of a cable is used more often than it exists.
void expect_disjoint(const std::vector<std::vector<std::int64_t>>& rings, Cables cables) {
  for (const std::vector<std::int64_t>& ring : rings) {
    EXPECT_EQ(std::set<std::int64_t>(ring.begin(), ring.end()).size(), cables.size());
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const auto from = static_cast<std::size_t>(ring[i]);
      const auto to = static_cast<std::size_t>(ring[(i + 1) % ring.size()]);
      EXPECT_GE(--cables[from][to], 0);
    }
  }
}

TEST(Rings, FullMeshesDecomposeIntoAsManyRingsAsExist) {
  const std::pair<std::size_t, std::size_t> most[] = {{2, 1}, {3, 2}, {4, 2}, {5, 4}, {6, 4}, {7, 6}, {8, 7}};
  for (const auto& [gpus, count] : most) {
    const auto rings = disjoint_rings(full_mesh(gpus));
    EXPECT_EQ(rings.size(), count) << gpus;
    expect_disjoint(rings, full_mesh(gpus));
  }
}

TEST(Rings, SeveralCablesCarrySeveralRings) {
  const auto rings = disjoint_rings({{0, 3}, {3, 0}});
  EXPECT_EQ(rings.size(), 3U);
}

TEST(Rings, ThereIsNoneWithoutACycle) {
  EXPECT_TRUE(disjoint_rings({{0, 1, 0}, {1, 0, 1}, {0, 1, 0}}).empty());
  EXPECT_TRUE(disjoint_rings({{0}}).empty());
}

}  // namespace
}  // namespace trainsim::hardware
