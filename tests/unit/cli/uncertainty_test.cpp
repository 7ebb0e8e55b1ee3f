// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/uncertainty.hpp"

#include <gtest/gtest.h>

namespace trainsim::cli {
namespace {

/// The distribution function of a triangle on [2, 6] with its top at 3 is (x - 2)^2 / 4 up to 3, where it is
/// 1/4, and 1 - (6 - x)^2 / 12 above.
TEST(Triangular, InvertsItsDistributionFunction) {
  EXPECT_NEAR(triangular(2, 3, 6, 0.0), 2.0, 1e-12);
  EXPECT_NEAR(triangular(2, 3, 6, 0.0625), 2.5, 1e-12);
  EXPECT_NEAR(triangular(2, 3, 6, 0.25), 3.0, 1e-12);
  EXPECT_NEAR(triangular(2, 3, 6, 1 - 4.0 / 12), 4.0, 1e-12);
  EXPECT_NEAR(triangular(2, 3, 6, 1.0), 6.0, 1e-12);
}

TEST(Triangular, MayHaveItsTopAtAnEnd) {
  EXPECT_NEAR(triangular(2, 2, 6, 0.0), 2.0, 1e-12);
  EXPECT_NEAR(triangular(2, 6, 6, 0.25), 4.0, 1e-12);
  EXPECT_EQ(triangular(5, 5, 5, 0.7), 5.0);
}

}  // namespace
}  // namespace trainsim::cli
