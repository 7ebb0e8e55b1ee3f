// SPDX-License-Identifier: Apache-2.0
#include "sim/base/ranges.hpp"

#include <gtest/gtest.h>

namespace trainsim {
namespace {

TEST(Ranges, JoinsWhatFollowsByOne) {
  EXPECT_EQ(join_ranges({}), "");
  EXPECT_EQ(join_ranges({3}), "3");
  EXPECT_EQ(join_ranges({0, 1, 2, 5}), "0-2, 5");
  EXPECT_EQ(join_ranges({8, 9, 0, 2, 1}), "8-9, 0, 2, 1");
}

}  // namespace
}  // namespace trainsim
