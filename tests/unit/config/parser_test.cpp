// SPDX-License-Identifier: Apache-2.0
#include "sim/config/parser.hpp"

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

TEST(Parser, KeepsOrderPositionsAndQuotes) {
  const Value map = parsed("b: 1\na:\n  - x\n  - \"2\"\n");
  ASSERT_EQ(map.kind, Kind::kMap);
  ASSERT_EQ(map.entries.size(), 2u);
  EXPECT_EQ(map.entries[0].key, "b");
  EXPECT_EQ(map.entries[1].at.line, 2);
  const Value& list = map.find("a")->value;
  ASSERT_EQ(list.kind, Kind::kList);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[1].text, "2");
  EXPECT_EQ(list.items[1].at.line, 4);
  EXPECT_EQ(list.items[1].at.column, 5);
}

TEST(Parser, TakesNothingForNull) {
  EXPECT_EQ(parsed("").kind, Kind::kNull);
  EXPECT_EQ(parsed("# only a comment\n").kind, Kind::kNull);
  const Value map = parsed("a:\nb: ~\nc: null\nd: \"\"\n");
  EXPECT_EQ(map.find("a")->value.kind, Kind::kNull);
  EXPECT_EQ(map.find("a")->value.at.line, 1);
  EXPECT_EQ(map.find("b")->value.kind, Kind::kNull);
  EXPECT_EQ(map.find("c")->value.kind, Kind::kNull);
  EXPECT_EQ(map.find("d")->value.kind, Kind::kScalar);
}

TEST(Parser, AcceptsOneDocumentWithItsMarkers) {
  EXPECT_EQ(parsed("---\na: 1\n...\n").find("a")->value.text, "1");
}

TEST(Parser, ExpandsAliases) {
  const Value map = parsed("base: &b {x: 1}\ncopy: *b\n");
  const Value& copy = map.find("copy")->value;
  ASSERT_EQ(copy.kind, Kind::kMap);
  EXPECT_EQ(copy.find("x")->value.text, "1");
  EXPECT_EQ(copy.at.line, 1);  // problems inside are where the value is written
}

TEST(Parser, ExpandsMergeKeysBelowTheMappingsOwnKeys) {
  const Value map = parsed("one: &one {x: 1, y: 1}\ntwo: &two {y: 2, z: 2}\nall: {<<: [*one, *two], x: 0}\n");
  const Value& all = map.find("all")->value;
  ASSERT_EQ(all.entries.size(), 3u);
  EXPECT_EQ(all.find("x")->value.text, "0");
  EXPECT_EQ(all.find("y")->value.text, "1");
  EXPECT_EQ(all.find("z")->value.text, "2");
}

TEST(Parser, ReportsDuplicateKeysWithBothLinesAndKeepsTheFirst) {
  const std::string text = "plan:\n  a: 1\n  b: 2\n  a: 3\n";
  Report report;
  const std::optional<Value> value = parse(source_of(text), text, report);
  EXPECT_EQ(report.text(),
            "test.yaml:4:3: error: plan.a: duplicate key, already given in line 2; remove one of the two\n"
            "    4 |   a: 3\n"
            "      |   ^");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->find("plan")->value.find("a")->value.text, "1");
}

TEST(Parser, NamesTheListItemOfADuplicate) {
  EXPECT_EQ(parse_error("l:\n  - {a: 1}\n  - {a: 1, a: 2}\n"),
            "test.yaml:3:12: error: l[1].a: duplicate key, already given in line 3; remove one of the two");
}

TEST(Parser, NestsUpTo32Levels) {
  const auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(parse_error("a: " + nested(31)), "");
  EXPECT_NE(parse_error("a: " + nested(32)).find("nested deeper than 32 levels"), std::string::npos);
}

TEST(Parser, LimitsAliases) {
  const auto with_aliases = [](int count) {
    std::string text = "a: &a 1\nb: [";
    for (int i = 0; i < count; ++i) text += "*a, ";
    return text + "]\n";
  };
  EXPECT_EQ(parse_error(with_aliases(100)), "");
  EXPECT_NE(parse_error(with_aliases(101)).find("more than 100 aliases"), std::string::npos);
}

TEST(Parser, LimitsWhatAliasesExpandTo) {
  // A list of 999 values is 1000 with itself: 100 of it are 100,000, which is just allowed; with one value
  // more in the list the hundredth alias goes beyond.
  const auto text_of = [](int values) {
    std::string text = "a: &a [";
    for (int i = 0; i < values; ++i) text += "1, ";
    text += "]\nb: [";
    for (int i = 0; i < 100; ++i) text += "*a, ";
    return text + "]\n";
  };
  EXPECT_EQ(parse_error(text_of(999)), "");
  EXPECT_NE(parse_error(text_of(1000)).find("aliases expand to more than 100000 values"), std::string::npos);
}

TEST(Parser, FindsQuotesThatTheLibraryLetsRunToTheEnd) {
  EXPECT_EQ(parse_error("a: \"x\nb: 1\n"), "test.yaml:1:4: error: the quote that opens here is never closed");
  EXPECT_EQ(parse_error("a: 'it''s\n"), "test.yaml:1:4: error: the quote that opens here is never closed");
  EXPECT_EQ(parse_error("a: \"say \\\"x\\\"\"\nb: 'it''s'\nc: &c \"y\"\n"), "");
}

TEST(Parser, RefusesTagsAndKeysThatAreNoWords) {
  EXPECT_NE(parse_error("a: !!int 8\n").find("tags such as !!str are not supported"), std::string::npos);
  EXPECT_NE(parse_error("? [a]\n: b\n").find("a key must be a word, not a list"), std::string::npos);
  EXPECT_NE(parse_error(": b\n").find("a key is missing before ':'"), std::string::npos);
}

TEST(Parser, RefusesASecondDocument) {
  EXPECT_EQ(parse_error("a: 1\n---\nb: 2\n"),
            "test.yaml:2:1: error: a second document starts here; a configuration is one document");
  EXPECT_EQ(parse_error("{a: 1}\nb: 2\n"),
            "test.yaml:2:1: error: unexpected text after the end of the document");
}

TEST(Parser, NeedsAMappingInAFile) {
  Report report;
  EXPECT_FALSE(parse_mapping(source_of("- a\n"), report));
  EXPECT_EQ(report.text(),
            "test.yaml:1:1: error: the file must be a mapping (lines of 'key: value'), not a list\n"
            "    1 | - a\n"
            "      | ^");
}

}  // namespace
}  // namespace trainsim::config
