// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/background.hpp"

#include <gtest/gtest.h>

#include "tests/support/jobs.hpp"

namespace trainsim::hardware {
namespace {

TEST(Background, IsSpreadOverNicsAndGrowsByOversubscription) {
  // Two nodes of eight NICs of 10 GB/s send 160 GB/s.
  ClusterSpec cluster = tests::round_cluster();
  EXPECT_DOUBLE_EQ(background_of(cluster, 16, 16e9).nics, 0.1);
  EXPECT_EQ(background_of(cluster, 16, 16e9).switches, 0);
  // Uplinks have half of what enters the leaf, and others take a quarter of them.
  cluster.fabric.oversubscription = 2;
  cluster.fabric.background_load = 0.25;
  const BackgroundLoad load = background_of(cluster, 16, 16e9);
  EXPECT_DOUBLE_EQ(load.switches, 0.25 + 0.2);
  const ClusterSpec left = with_background(cluster, load);
  EXPECT_DOUBLE_EQ(left.nic.effective_bandwidth(), 9e9);
  EXPECT_DOUBLE_EQ(left.fabric.background_load, 0.45);
}

TEST(Background, NeedsNics) {
  ClusterSpec cluster = tests::round_cluster();
  cluster.nics_per_node = 0;
  EXPECT_GT(background_of(cluster, 8, 1e9).nics, 1);
}

}  // namespace
}  // namespace trainsim::hardware
