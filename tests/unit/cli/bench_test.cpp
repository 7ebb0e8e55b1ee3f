// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/bench.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::cli {
namespace {

using Sizes = std::vector<double>;

std::string error_of(const std::string& sizes) {
  try {
    parse_sizes(sizes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BenchSizes, RangesAndLists) {
  EXPECT_EQ(parse_sizes("1 MiB..4MiB"), (Sizes{1048576, 2097152, 4194304}));
  EXPECT_EQ(parse_sizes("8 B..1 kB * 5"), (Sizes{8, 40, 200, 1000}));
  EXPECT_EQ(parse_sizes("3 MB..5 MB"), (Sizes{3e6}));
  EXPECT_EQ(parse_sizes(" 1 GiB,8 B"), (Sizes{1073741824, 8}));
}

TEST(BenchSizes, SayWhatIsWrong) {
  EXPECT_NE(error_of("8").find("--sizes: 8 has no unit"), std::string::npos) << error_of("8");
  EXPECT_NE(error_of("1 MiB..1 kiB").find("unknown unit 'kiB'"), std::string::npos);
  EXPECT_NE(error_of("1 MiB..1 KiB").find("ends below its start"), std::string::npos);
  EXPECT_NE(error_of("1 B..1 KiB*1").find("must be a number above 1, not '1'"), std::string::npos);
  EXPECT_NE(error_of("0 B").find("is not between 1 B and 1 PB"), std::string::npos);
  EXPECT_NE(error_of("1 MiB,").find("--sizes: "), std::string::npos);
}

}  // namespace
}  // namespace trainsim::cli
