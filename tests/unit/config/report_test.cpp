// SPDX-License-Identifier: Apache-2.0
#include "sim/config/report.hpp"

#include <gtest/gtest.h>

#include "sim/config/utf8.hpp"
#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

TEST(Report, PrintsPositionSourceLineAndCaret) {
  const auto source = source_of("# first\n  tensor_parallel: 8\n", "dir/run.yaml");
  Report report;
  report.add({source, 2, 20}, "plan.tensor_parallel", "8 is wrong");
  EXPECT_EQ(report.text(),
            "dir/run.yaml:2:20: error: plan.tensor_parallel: 8 is wrong\n"
            "    2 |   tensor_parallel: 8\n"
            "      |                    ^");
}

TEST(Report, SortsBySourceLineAndColumn) {
  const auto first = source_of("a b\nc\n", "first", 0);
  const auto second = source_of("x\n", "second", 1);
  Report report;
  report.add({second, 1, 1}, "", "four");
  report.add({first, 2, 1}, "", "three");
  report.add({first, 1, 3}, "", "two");
  report.add({first, 1, 1}, "", "one");
  const std::string text = report.text();
  EXPECT_LT(text.find("one"), text.find("two"));
  EXPECT_LT(text.find("two"), text.find("three"));
  EXPECT_LT(text.find("three"), text.find("four"));
}

TEST(Report, CountsCharactersNotBytes) {
  // "größer: " is 8 characters in 10 bytes, so the value is in byte column 11 and character column 9.
  Report report;
  report.add({source_of("größer: x\n"), 1, 11}, "", "wrong");
  EXPECT_EQ(report.text(), "test.yaml:1:9: error: wrong\n    1 | größer: x\n      |         ^");
}

TEST(Report, ShowsAWindowOfLongLines) {
  const std::string line = std::string(100, 'a') + "X" + std::string(100, 'b');
  Report report;
  report.add({source_of(line), 1, 101}, "", "wrong");
  // 80 columns, 40 of them before the caret; the first and the last become the sign for a cut.
  EXPECT_EQ(report.text(), "test.yaml:1:101: error: wrong\n    1 | …" + std::string(39, 'a') + "X" +
                               std::string(38, 'b') + "…\n      | " + std::string(40, ' ') + "^");
}

TEST(Report, HasNoLineForTheWholeFile) {
  Report report;
  report.add({source_of("a: 1\n"), 0, 0}, "", "empty");
  EXPECT_EQ(report.text(), "test.yaml: error: empty");
}

TEST(Report, CutsVeryManyProblems) {
  const auto source = source_of("a: 1\n");
  Report report;
  for (int i = 0; i < 103; ++i) report.add({source, 1, 1}, "", "wrong");
  EXPECT_TRUE(report.text().ends_with("(3 more problems are not shown)"));
}

TEST(Report, ThrowsOnlyWhenThereIsSomething) {
  Report report;
  EXPECT_NO_THROW(report.throw_if_any());
  report.add({source_of("a: 1\n"), 1, 1}, "", "wrong");
  EXPECT_THROW(report.throw_if_any(), InputError);
}

TEST(Report, TellsUnknownKeysFromOtherProblems) {
  Report known;
  known.add({source_of("a: 1\n"), 1, 1}, "a", "wrong");
  try {
    known.throw_if_any();
  } catch (const UnknownKeyError&) {
    FAIL();
  } catch (const InputError&) {
  }
  Report unknown;
  unknown.add_unknown_key({source_of("a: 1\n"), 1, 1}, "a", "unknown key");
  known.append(unknown);
  EXPECT_THROW(unknown.throw_if_any(), UnknownKeyError);
  EXPECT_THROW(known.throw_if_any(), UnknownKeyError);
}

TEST(Utf8, KnowsWellFormedSequences) {
  EXPECT_EQ(code_point_bytes("a"), 1u);
  EXPECT_EQ(code_point_bytes("é"), 2u);
  EXPECT_EQ(code_point_bytes("…"), 3u);
  EXPECT_EQ(code_point_bytes("\xF0\x9F\x98\x80"), 4u);
  EXPECT_EQ(code_point_bytes("\xC0\xAF"), 0u);          // overlong
  EXPECT_EQ(code_point_bytes("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(code_point_bytes("\xF4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(code_point_bytes("\xE2\x80"), 0u);          // cut off
  EXPECT_EQ(code_point_bytes("\x80"), 0u);
}

TEST(Utf8, ClipsForMessages) {
  EXPECT_EQ(clip("short"), "short");
  EXPECT_EQ(clip("two\nlines"), "two lines");
  EXPECT_EQ(clip("\x1b[31m\xff"), " [31m?");
  EXPECT_EQ(clip(std::string(48, 'a')), std::string(48, 'a'));
  EXPECT_EQ(clip(std::string(49, 'a')), std::string(48, 'a') + "…");
}

}  // namespace
}  // namespace trainsim::config
