// SPDX-License-Identifier: Apache-2.0
#include "sim/report/sweep_rows.hpp"

#include <gtest/gtest.h>

namespace trainsim::report {
namespace {

using sweep::Cell;
using sweep::CellKind;
using sweep::Row;

/// A point of a sweep over `key`, with 2 data-parallel ranks.
struct Point {
  std::string key;
  int value = 1;
  int micro_batch_size = 1;
  int global_batch_size = 1;
  double rate = 0;
  double headroom_gib = 1;
};

Cell number_cell(const char* column, double value) {
  return {column, std::to_string(value), CellKind::kBare};
}

Row row_of(const Point& point) {
  return {sweep::value_cell(point.key, std::to_string(point.value)),
          {"name", "n", CellKind::kText},
          number_cell("data_parallel", 2),
          number_cell("micro_batch_size", point.micro_batch_size),
          number_cell("global_batch_size", point.global_batch_size),
          number_cell("step_time_s", 2),
          number_cell("tokens_per_s_per_gpu", point.rate),
          {"fits", point.headroom_gib >= 0 ? "true" : "false", CellKind::kBare},
          number_cell("memory_headroom_bytes", point.headroom_gib * 1073741824.0),
          {"error", "", CellKind::kNone}};
}

Row invalid(const std::string& key, const std::string& value) {
  return {sweep::value_cell(key, value), {"name", "", CellKind::kNone}, {"error", "why", CellKind::kText}};
}

std::vector<std::string> notes_of(const std::vector<Point>& points) {
  std::vector<Row> rows;
  rows.reserve(points.size());
  for (const Point& point : points) rows.push_back(row_of(point));
  return sweep_notes(rows);
}

const std::string kGlobal = "plan.global_batch_size";
const std::string kMicro = "plan.micro_batch_size";

TEST(SweepNotes, NameTheKneeInMicroBatches) {
  // Batches of 32, 64 and 128 sequences on 2 ranks, 2 sequences at a time: 8, 16 and 32 micro-batches.
  const auto notes =
      notes_of({{kGlobal, 32, 2, 32, 100}, {kGlobal, 64, 2, 64, 110}, {kGlobal, 128, 2, 128, 110.5}});
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[0],
            "Most tokens/s per GPU of what fits: plan.global_batch_size=128 with 110.5 (2.000 s per step).");
  EXPECT_EQ(
      notes[1],
      "Beyond m = 16 micro-batches (plan.global_batch_size = 64) a doubling gains under 1 % in tokens/s per "
      "GPU.");
  EXPECT_EQ(
      notes[2],
      "Memory is no limit here: m = 32 micro-batches (plan.global_batch_size = 128), the largest, leaves "
      "1.00 GiB.");
}

TEST(SweepNotes, SayWhenThereIsNoKnee) {
  const auto notes = notes_of({{kGlobal, 2, 1, 2, 100}, {kGlobal, 4, 1, 4, 105}});
  EXPECT_EQ(notes[1],
            "No knee up to m = 2 micro-batches (plan.global_batch_size = 4), the largest here that fits: a "
            "doubling "
            "still gains 5.0 % in tokens/s per GPU.");
}

TEST(SweepNotes, NameTheMemoryLimit) {
  const auto notes =
      notes_of({{kMicro, 1, 1, 16, 100}, {kMicro, 2, 2, 16, 100.5}, {kMicro, 4, 4, 16, 130, -2.5}});
  EXPECT_EQ(notes[0],
            "Most tokens/s per GPU of what fits: plan.micro_batch_size=2 with 100.5 (2.000 s per step).");
  EXPECT_EQ(notes[1], "Beyond plan.micro_batch_size = 1 a doubling gains under 1 % in tokens/s per GPU.");
  EXPECT_EQ(notes[2],
            "Memory limit: plan.micro_batch_size = 2 is the largest that fits; plan.micro_batch_size = 4 "
            "needs 2.50 "
            "GiB more than a GPU has.");
}

TEST(SweepNotes, SayWhenNothingFits) {
  const auto notes = notes_of({{kMicro, 1, 1, 16, 100, -1}, {kMicro, 2, 2, 16, 101, -3}});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "Nothing fits into memory: even plan.micro_batch_size = 1 needs 1.00 GiB more than a GPU has.");
}

TEST(SweepNotes, SayWhenTheHostIsFull) {
  std::vector<Row> rows = {row_of({kMicro, 1, 1, 16, 100}), row_of({kMicro, 2, 2, 16, 110})};
  for (Cell& cell : rows.back()) {
    if (cell.column == "fits") cell.text = "false";
  }
  EXPECT_EQ(
      sweep_notes(rows).back(),
      "Memory limit: plan.micro_batch_size = 1 is the largest that fits; plan.micro_batch_size = 2 offloads "
      "more than the host holds.");
}

TEST(SweepNotes, OtherKeysHaveNoKnee) {
  EXPECT_EQ(notes_of({{"gpus", 8, 1, 16, 100}, {"gpus", 16, 1, 16, 100}}).size(), 1U);
}

TEST(SweepNotes, CountWhatIsNotLegal) {
  const auto notes = sweep_notes({row_of({kMicro, 1, 1, 16, 100}), invalid(kMicro, "3")});
  EXPECT_EQ(notes.back(), "1 of 2 points are not legal; their rows say why.");
}

TEST(SweepText, ShowsWhyAPointIsNotLegal) {
  const std::string text = sweep_text({row_of({kMicro, 1, 1, 16, 100}), invalid(kMicro, "3")});
  EXPECT_NE(text.find("  plan.micro_batch_size  step time  tokens/s/GPU"), std::string::npos) << text;
  EXPECT_NE(text.find("                      3  why\n"), std::string::npos) << text;
}

TEST(SweepText, CutsLongTextsBetweenCharacters) {
  // 90 bytes at most, of which three dots: 87 bytes are 43 characters of two.
  std::string reason;
  for (int i = 0; i < 60; ++i) reason += "\u00e9";
  Row row = invalid(kMicro, "3");
  row.back().text = reason;
  EXPECT_NE(sweep_text({row}).find("  " + reason.substr(0, 86) + "...\n"), std::string::npos);
}

/// A point whose whole run takes so many days.
Row with_run(const std::string& key, int value, double days) {
  Row row = row_of({key, value, 1, 16, 100});
  row.push_back(number_cell("run_days", days));
  row.push_back(number_cell("run_goodput", 20.0 / days));
  row.push_back(number_cell("run_gpu_hours", 24 * days));
  return row;
}

TEST(SweepText, ShowsWholeRunsInsteadOfTheirStep) {
  const std::vector<Row> rows = {with_run("run.checkpoint.stall", 1, 21),
                                 with_run("run.checkpoint.stall", 9, 25)};
  EXPECT_EQ(
      sweep_text(rows),
      "  run.checkpoint.stall        run  goodput  GPU-hours  memory\n"
      "                     1  21.0 days   95.2 %      504.0  \n"
      "                     9  25.0 days   80.0 %      600.0  \n"
      "\n"
      "  - Shortest run of what fits: run.checkpoint.stall=1 with 21.0 days and 504.0 GPU-hours at a goodput "
      "of 95.2\n    %.\n");
}

TEST(SweepText, ShowsWholeRunsBesideTheirSteps) {
  std::vector<Row> rows = {with_run("gpus", 8, 21), with_run("gpus", 16, 12)};
  for (Row& row : rows) {
    row.push_back(number_cell("run_cost", 2'500'000));
    row.push_back({"run_currency", "EUR", CellKind::kText});
    row.push_back(number_cell("run_energy_kwh", 20'000));
    row.push_back(number_cell("run_co2_kg", 9'000));
  }
  const std::string text = sweep_text(rows);
  EXPECT_NE(
      text.find("  peak memory        run  goodput  GPU-hours         cost     energy      CO2  memory\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("12.0 days  166.7 %      288.0  2.500 M EUR  20.00 MWh  9000 kg"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  - Most tokens/s per GPU"), std::string::npos) << text;
  EXPECT_NE(text.find("  - Shortest run of what fits: gpus=16 with 12.0 days"), std::string::npos) << text;
}

TEST(SweepText, NamesNoShortestOfEqualRuns) {
  const std::vector<Row> rows = {with_run("run.power.pue", 1, 21), with_run("run.power.pue", 2, 21)};
  EXPECT_EQ(sweep_notes(rows).size(), 0U);
}

TEST(ScalarCells, AreTheSameColumnsForEverySummary) {
  Summary summary;
  summary.bubble_ratio_theory = 0.5;
  EXPECT_EQ(sweep::Row(scalar_cells(summary)).size(), scalar_cells({}).size());
  EXPECT_EQ(find(scalar_cells({}), "bubble_ratio_theory")->kind, CellKind::kNone);
  EXPECT_EQ(find(scalar_cells(summary), "bubble_ratio_theory")->text, "0.5");
}

}  // namespace
}  // namespace trainsim::report
