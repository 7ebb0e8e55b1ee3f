// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/row.hpp"

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "sim/report/sweep_rows.hpp"

namespace trainsim::sweep {
namespace {

const std::string kSweep = "0123456789abcdef";

Row row_with(const std::vector<Cell>& cells, std::size_t point) {
  Row row = cells;
  for (Cell& cell : identity_cells({point, 3, kSweep})) row.push_back(std::move(cell));
  return row;
}

const Row kRow = row_with({value_cell("gpus", "64"),
                           value_cell("plan.recompute", "{a: 1, b: \"x\"}"),
                           {"error", "", CellKind::kNone}},
                          2);
const std::string kJson =
    R"({"gpus":64,"plan.recompute":"{a: 1, b: \"x\"}","error":null,"point":2,"points":3,"sweep":"0123456789abcdef"})";
const std::string kCsv = R"(64,"{a: 1, b: ""x""}",,2,3,0123456789abcdef)";
const std::string kHeader = "gpus,plan.recompute,error,point,points,sweep";

TEST(SweepRow, IsWrittenAsJsonAndCsv) {
  EXPECT_EQ(report::json_line(kRow), kJson);
  EXPECT_EQ(report::csv_header(kRow), kHeader);
  EXPECT_EQ(report::csv_line(kRow), kCsv);
}

TEST(SweepRow, KeepsItsIdentityInBothForms) {
  for (const RowFormat format : {RowFormat::kJsonLines, RowFormat::kCsv}) {
    const std::optional<Identity> identity = identity_of(format == RowFormat::kCsv ? kCsv : kJson, format);
    ASSERT_TRUE(identity);
    EXPECT_EQ(identity->point, 2U);
    EXPECT_EQ(identity->points, 3U);
    EXPECT_EQ(identity->sweep, kSweep);
  }
}

TEST(SweepRow, HasNoIdentityWhereItIsTorn) {
  for (std::size_t length = 0; length < kJson.size(); ++length)
    EXPECT_FALSE(identity_of(kJson.substr(0, length), RowFormat::kJsonLines)) << length;
  for (std::size_t length = 0; length < kCsv.size(); ++length)
    EXPECT_FALSE(identity_of(kCsv.substr(0, length), RowFormat::kCsv)) << length;
}

TEST(SweepRow, ReadsWhatItWrote) {
  for (const std::string& text : {kJson + "\n", kHeader + "\n" + kCsv + "\n"}) {
    const std::vector<Row> rows = report::read_rows(read_lines(text, "rows"));
    ASSERT_EQ(rows.size(), 1U);
    ASSERT_EQ(rows[0].size(), kRow.size());
    for (std::size_t c = 0; c < kRow.size(); ++c) {
      EXPECT_EQ(rows[0][c].column, kRow[c].column);
      EXPECT_EQ(rows[0][c].text, kRow[c].text);
    }
  }
}

TEST(SweepRow, ValuesAreNumbersOnlyIfJsonSaysSo) {
  for (const char* text : {"1", "-2", "0.5", "1e9", "1.5e-3", "true", "0"})
    EXPECT_EQ(value_cell("k", text).kind, CellKind::kBare) << text;
  for (const char* text : {"010", "1_000", "7B", "100 Gb/s", ".5", "1.", "1e", "yes", "", "-", "0x1"})
    EXPECT_EQ(value_cell("k", text).kind, CellKind::kText) << text;
}

TEST(SweepRow, ATornLineIsToldApart) {
  const RowLines rows = read_lines(kJson + "\n" + kJson.substr(0, 20), "rows");
  EXPECT_TRUE(rows.torn);
  EXPECT_EQ(rows.lines.size(), 1U);
  EXPECT_EQ(rows.complete_bytes, kJson.size() + 1);
  EXPECT_FALSE(read_lines(kJson + "\n", "rows").torn);
}

TEST(SweepRow, OfCsvMayBeginWithABrace) {
  const std::string text = kHeader + "\n{a: 1},x,,2,3," + kSweep + "\n";
  EXPECT_EQ(read_lines(text, "rows").identities.size(), 1U);
}

TEST(SweepRow, OtherFilesAreRefused) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      read_lines(text, "x.jsonl");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of("a,b\n1,2\n"),
            "x.jsonl:1: error: this is no file of a sweep: its last columns are not point, points and sweep");
  EXPECT_EQ(
      error_of(kJson + "\n{\"a\":1}\n"),
      "x.jsonl:2: error: this line is no row of a sweep; name a file that trainsim sweep wrote, as it wrote "
      "it");
  EXPECT_NE(error_of(kHeader + "\n" + kJson + "\n"), "");
  EXPECT_NE(error_of(kJson + "\n" + kCsv + "\n"), "");
}

}  // namespace
}  // namespace trainsim::sweep
