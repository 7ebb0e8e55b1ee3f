// SPDX-License-Identifier: Apache-2.0
#include "sim/config/section.hpp"

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

/// A section over the mapping in a text, and what was found in it.
struct Sheet {
  explicit Sheet(const std::string& text) : value(parsed(text)), section(value, value.at, "s", reading) {}

  /// Finishes the section and returns the first lines of all problems.
  std::vector<std::string> problems() {
    section.finish();
    std::vector<std::string> lines;
    std::string text = reading.report.text();
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string line = text.substr(0, end);
      if (line.find(": error: ") != std::string::npos) lines.push_back(line);
      text.erase(0, end + 1);
    }
    return lines;
  }

  Value value;
  Reading reading;
  Section section;
};

using Lines = std::vector<std::string>;

TEST(Section, ReadsWhatIsThere) {
  Sheet sheet("count: 2k\nnumber: 0.5\nrate: 200 Gb/s\nflag: true\nword: red\ntext: hello\nlist: [1, 2]\n");
  Section& s = sheet.section;
  EXPECT_EQ(s.required("count", as_count()), 2000);
  EXPECT_EQ(s.required("number", as_number()), 0.5);
  EXPECT_EQ(s.required("rate", as_quantity(Dimension::kRate)), 25e9);
  EXPECT_EQ(s.required("flag", as_flag()), true);
  EXPECT_EQ(s.required("word", as_choice(Words<int>{{"red", 1}, {"blue", 2}})), 1);
  EXPECT_EQ(s.required("text", as_text()), "hello");
  EXPECT_EQ(s.list("list", as_count()), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(s.optional("other", as_count()), std::nullopt);
  EXPECT_EQ(sheet.problems(), Lines{});
}

TEST(Section, RecordsDefaultsInTheOrderOfReading) {
  Sheet sheet("b: 3\n");
  EXPECT_EQ(sheet.section.defaulted("a", as_count(), "40M"), 40'000'000);
  EXPECT_EQ(sheet.section.defaulted("b", as_count(), "2"), 3);
  EXPECT_EQ(sheet.section.defaulted("c", as_flag(), "true"), true);
  const std::vector<std::pair<std::string, std::string>> expected = {{"s.a", "40M"}, {"s.c", "true"}};
  EXPECT_EQ(sheet.reading.defaults, expected);
}

TEST(Section, CollectsAllProblems) {
  Sheet sheet("a: x\nb: 0\nunknown: 1\n");
  sheet.section.required("a", as_count());
  sheet.section.required("b", as_count());
  sheet.section.required("c", as_count());
  const Lines expected = {
      "test.yaml:1:1: error: s.c: missing; it needs a count such as 8",
      "test.yaml:1:4: error: s.a: x is not a count; write a count such as 1024, 1_024, 2k, 40M, 7B or 1e12",
      "test.yaml:2:4: error: s.b: must be a positive integer, not 0",
      "test.yaml:3:1: error: s.unknown: unknown key; legal here: a, b or c"};
  EXPECT_EQ(sheet.problems(), expected);
  EXPECT_EQ(sheet.reading.unread, (std::vector<std::string>{"s.a", "s.b", "s.c"}));
}

TEST(Section, ReportsAMisspeltRequiredKeyOnce) {
  Sheet sheet("num_layer: 4\n");
  sheet.section.required("num_layers", as_count());
  EXPECT_EQ(sheet.problems(),
            Lines{"test.yaml:1:1: error: s.num_layer: unknown key; did you mean num_layers?"});
}

TEST(Section, MarksTheKeyThatAMisspeltOneStandsFor) {
  Sheet sheet("micro_batchsize: 4\n");
  sheet.section.defaulted("micro_batch_size", as_count(), "1");
  sheet.problems();
  EXPECT_EQ(sheet.reading.unread, std::vector<std::string>{"s.micro_batch_size"});
}

TEST(Section, KnowsNamesOfOtherTools) {
  Sheet sheet("tp: 4\nhidden: 2\n");
  sheet.section.defaulted("tensor_parallel", as_count(), "1");
  const Lines expected = {"test.yaml:1:1: error: s.tp: unknown key; did you mean tensor_parallel?",
                          "test.yaml:2:1: error: s.hidden: unknown key; legal here: tensor_parallel"};
  EXPECT_EQ(sheet.problems(), expected);
}

TEST(Section, TellsTypesApart) {
  Sheet sheet("a: [1]\nb: {c: 1}\nd:\ne: \"8\"\nf: true\ng: ${x}\nh: ''\n");
  for (const char* key : {"a", "b", "d", "e", "f", "g", "h"}) sheet.section.required(key, as_count());
  const std::string forms = "write a count such as 1024, 1_024, 2k, 40M, 7B or 1e12";
  const Lines expected = {
      "test.yaml:1:4: error: s.a: needs a count such as 8, not a list",
      "test.yaml:2:4: error: s.b: needs a count such as 8, not a mapping",
      "test.yaml:3:1: error: s.d: has no value; it needs a count such as 8",
      "test.yaml:4:4: error: s.e: needs a count such as 8, but in quotes it is text; remove the quotes",
      "test.yaml:5:4: error: s.f: true is a boolean, not a number; " + forms,
      "test.yaml:6:4: error: s.g: ${x} is a variable, and variables are not filled in here; write the value "
      "itself",
      "test.yaml:7:4: error: s.h: needs a count such as 8, not an empty text"};
  EXPECT_EQ(sheet.problems(), expected);
}

TEST(Section, AcceptsQuotesWhereTextIsMeant) {
  Sheet sheet("rate: \"400Gbps\"\nword: 'red'\n");
  EXPECT_EQ(sheet.section.required("rate", as_quantity(Dimension::kRate)), 50e9);
  EXPECT_EQ(sheet.section.required("word", as_choice(Words<int>{{"red", 1}})), 1);
  EXPECT_EQ(sheet.problems(), Lines{});
}

TEST(Section, ChecksRanges) {
  Sheet sheet("a: 5\nb: 0\nc: 1.5\nd: -1 us\ne: 0 us\n");
  sheet.section.required("a", as_count({1, 4}));
  sheet.section.required("b", as_number(kEfficiency));
  sheet.section.required("c", as_number(kEfficiency));
  sheet.section.required("d", as_quantity(Dimension::kTime, {0.0, 1.0, true}));
  EXPECT_EQ(sheet.section.required("e", as_quantity(Dimension::kTime, {0.0, 1.0, true})), 0.0);
  const Lines expected = {"test.yaml:1:4: error: s.a: must be at most 4, not 5",
                          "test.yaml:2:4: error: s.b: must be more than 0, not 0",
                          "test.yaml:3:4: error: s.c: must be at most 1, not 1.5",
                          "test.yaml:4:4: error: s.d: must be at least 0, not -1 us"};
  EXPECT_EQ(sheet.problems(), expected);
}

TEST(Section, HelpsWithWords) {
  const Words<int> words = {{"gelu", 1}, {"swiglu", 2}};
  Sheet sheet("a: geluu\nb: mish\nc: glu\n");
  sheet.section.required("a", as_choice(words));
  sheet.section.required("b", as_choice(words));
  sheet.section.required("c", as_choice(words, {"glu"}));
  const Lines expected = {
      "test.yaml:1:4: error: s.a: unknown word geluu; did you mean gelu? legal here: gelu or swiglu",
      "test.yaml:2:4: error: s.b: unknown word mish; legal here: gelu or swiglu",
      "test.yaml:3:4: error: s.c: glu is not supported by this version; legal here: gelu or swiglu"};
  EXPECT_EQ(sheet.problems(), expected);
}

TEST(Section, ReadsMappingsBelow) {
  Sheet sheet("inner: {x: 2}\nwrong: 3\nitems:\n  - {x: 4}\n  - 5\n");
  std::optional<Section> inner = sheet.section.mapping("inner", true);
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->required("x", as_count()), 2);
  EXPECT_EQ(inner->field("x"), "s.inner.x");
  EXPECT_FALSE(sheet.section.mapping("wrong", true));
  EXPECT_FALSE(sheet.section.mapping("absent", true));
  std::vector<Section> items = sheet.section.mappings("items");
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].field("x"), "s.items[0].x");
  const Lines expected = {
      "test.yaml:1:1: error: s.absent: missing; it needs a mapping (lines of 'key: value')",
      "test.yaml:2:8: error: s.wrong: needs a mapping (lines of 'key: value'), not 3",
      "test.yaml:5:5: error: s.items[1]: needs a mapping, not 5"};
  EXPECT_EQ(sheet.problems(), expected);
}

TEST(Section, PointsAtTheWrongItemOfAList) {
  Sheet sheet("list: [1, x, 0]\n");
  sheet.section.list("list", as_count());
  const Lines lines = sheet.problems();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("test.yaml:1:11: error: s.list[1]: x is not a count"));
  EXPECT_EQ(lines[1], "test.yaml:1:14: error: s.list[2]: must be a positive integer, not 0");
}

TEST(Section, RefusesUnsupportedKeysWithoutOfferingThem) {
  Sheet sheet("experts: 8\nexpert: 8\n");
  sheet.section.optional("layers", as_count());
  sheet.section.unsupported({"experts"});
  const Lines expected = {"test.yaml:1:1: error: s.experts: not supported by this version; remove this key",
                          "test.yaml:2:1: error: s.expert: unknown key; legal here: layers"};
  EXPECT_EQ(sheet.problems(), expected);
}

}  // namespace
}  // namespace trainsim::config
