// SPDX-License-Identifier: Apache-2.0
#include "sim/base/text.hpp"

#include <gtest/gtest.h>

namespace trainsim {
namespace {

TEST(Trimmed, TakesBlanksFromBothEndsAlone) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("ab"), "ab");
  EXPECT_EQ(trimmed(" \t\r\n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Lower, ChangesCapitalLettersAlone) {
  EXPECT_EQ(lower("GiB/s 5 Ü"), "gib/s 5 Ü");
  EXPECT_EQ(lower(""), "");
}

}  // namespace
}  // namespace trainsim
