// SPDX-License-Identifier: Apache-2.0
// What people and scripts read: CSV, JSON, text, assertions, and how numbers look.
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/report/format.hpp"
#include "sim/report/writers.hpp"
#include "tests/unit/report/outcome.hpp"

namespace trainsim::report {
namespace {

using plan::ParallelPlan;
using program::Cause;
using program::MemoryCategory;
using tests::gpt;
using tests::kTight;
using tests::Outcome;
using tests::simulated;
using tests::split_plan;
using tests::varied_plans;
using tests::written_by_hand;

/// Cells of a CSV row; a quoted cell may hold commas, and quotes that are doubled (RFC 4180).
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '"' && quoted && i + 1 < row.size() && row[i + 1] == '"') {
      cells.back() += row[i++];
    } else if (row[i] == '"') {
      quoted = !quoted;
    } else if (row[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += row[i];
    }
  }
  return cells;
}

/// Header and row of a CSV result.
std::pair<std::vector<std::string>, std::vector<std::string>> csv_of(const Summary& summary) {
  std::istringstream stream(to_csv(summary));
  std::string header;
  std::string row;
  std::getline(stream, header);
  std::getline(stream, row);
  EXPECT_EQ(stream.peek(), std::char_traits<char>::eof());
  return {cells_of(header), cells_of(row)};
}

TEST(Csv, HasACellForEveryHeader) {
  for (const ParallelPlan& plan : varied_plans()) {
    const auto [header, row] = csv_of(simulated(gpt({8}), plan).summary());
    EXPECT_EQ(row.size(), header.size());
  }
  Summary summary = written_by_hand().summary();
  summary.bubble_ratio_theory.reset();
  const auto [header, row] = csv_of(summary);
  EXPECT_EQ(row.size(), header.size());
}

/// The columns that docs/output.md promises, in its order.
TEST(Csv, HasThePromisedColumns) {
  const std::string plan =
      "name,gpus,tensor_parallel,pipeline_parallel,virtual_pipeline,data_parallel,micro_batch_size,"
      "global_batch_size,";
  const std::string scalars =
      "step_time_s,tokens_per_s,tokens_per_s_per_gpu,samples_per_s,model_tflops_per_gpu,hardware_tflops_per_"
      "gpu,"
      "mfu,hfu,bubble_ratio,bubble_ratio_stage,bubble_ratio_theory,scaling_efficiency,fits,verdict,"
      "peak_memory_bytes,peak_reserved_bytes,memory_headroom_bytes,";
  const std::string breakdown =
      "breakdown_forward_s,breakdown_backward_s,breakdown_recompute_s,breakdown_optimizer_s,"
      "breakdown_tensor_communication_s,breakdown_pipeline_communication_s,breakdown_data_communication_s,"
      "breakdown_embedding_communication_s,breakdown_expert_communication_s,breakdown_bubble_s,"
      "breakdown_imbalance_s,"
      "breakdown_launch_s,breakdown_offload_s,breakdown_context_communication_s,";
  const std::string run =
      "run_steps,run_days,run_goodput,run_gpu_hours,run_cost,run_currency,run_energy_kwh,run_co2_kg";
  EXPECT_TRUE(to_csv(written_by_hand().summary()).starts_with(plan + scalars + breakdown + run + "\n"));
}

TEST(Csv, KeepsNumbersExactly) {
  const Summary summary = simulated(gpt({8}), split_plan({2, 2, 1, 1}, 4)).summary();
  const auto [header, row] = csv_of(summary);
  const auto cell = [&, &names = header, &cells = row](const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    return cells.at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(std::stod(cell("step_time_s")), summary.step_time);
  EXPECT_EQ(std::stod(cell("mfu")), summary.mfu);
  EXPECT_EQ(std::stoll(cell("peak_memory_bytes")), summary.peak_memory);
  EXPECT_EQ(cell("fits"), "true");
  EXPECT_EQ(std::stod(cell("breakdown_bubble_s")),
            summary.breakdown[static_cast<std::size_t>(Cause::kBubble)]);
}

TEST(Csv, QuotesANameWithACommaOrQuotes) {
  // The name is a file's name, which may be anything.
  Outcome outcome = written_by_hand();
  outcome.name = "run,\"two\"";
  const auto [header, row] = csv_of(outcome.summary());
  EXPECT_EQ(row.size(), header.size());
  EXPECT_EQ(row.front(), "run,\"two\"");
}

using Json = nlohmann::json;

TEST(JsonResult, HasEveryKeyOfTheContract) {
  const Json json = Json::parse(to_json(written_by_hand().summary()));
  for (const char* key : {"step_time_s",
                          "tokens_per_s",
                          "tokens_per_s_per_gpu",
                          "samples_per_s",
                          "model_tflops_per_gpu",
                          "hardware_tflops_per_gpu",
                          "mfu",
                          "hfu",
                          "bubble_ratio",
                          "bubble_ratio_stage",
                          "bubble_ratio_theory",
                          "scaling_efficiency",
                          "fits",
                          "peak_memory_bytes",
                          "breakdown",
                          "ranks",
                          "plan",
                          "parameters",
                          "warnings",
                          "simulation"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["schema"], 1);
  for (const char* key : {"rank", "represents", "stage", "tensor_rank", "data_rank", "busy_s", "bubble_s",
                          "peak_memory_bytes", "memory_at_peak"}) {
    EXPECT_TRUE(json["ranks"].at(0).contains(key)) << key;
  }
  for (const char* key : {"wall_s", "actors", "activities", "folded"}) {
    EXPECT_TRUE(json["simulation"].contains(key)) << key;
  }
}

TEST(JsonResult, HasTheSummarysValues) {
  const Json json = Json::parse(to_json(written_by_hand().summary()));
  EXPECT_EQ(json["step_time_s"], 12.0);
  EXPECT_EQ(json["fits"], true);
  EXPECT_TRUE(json["peak_memory_bytes"].is_number_integer());
  EXPECT_EQ(json["peak_memory_bytes"], Bytes{30} << 30);
  EXPECT_EQ(json["ranks"][1]["memory_at_peak"]["activations"], Bytes{30} << 30);
  EXPECT_EQ(json["warnings"], Json::array({"a warning"}));
  EXPECT_EQ(json["plan"]["pipeline_parallel"], 2);
  EXPECT_EQ(json["plan"]["micro_batches"], 4);
  EXPECT_EQ(json["simulation"]["folded"], true);
  EXPECT_NEAR(json["breakdown"]["forward"].get<double>(), 2.5, kTight);
  double sum = 0;
  for (const auto& [cause, seconds] : json["breakdown"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, 12, 1e-9);
}

TEST(JsonResult, SaysNullWhereThereIsNoClosedForm) {
  Summary summary = written_by_hand().summary();
  summary.bubble_ratio_theory.reset();
  EXPECT_TRUE(Json::parse(to_json(summary))["bubble_ratio_theory"].is_null());
}

TEST(JsonResult, EndsInANewline) {
  EXPECT_TRUE(to_json(written_by_hand().summary()).ends_with("}\n"));
}

TEST(TextResult, NamesItsConventions) {
  // Long texts are broken into lines.
  std::istringstream words(to_text(written_by_hand().summary()));
  std::string text;
  for (std::string word; words >> word;) text += word + " ";
  for (const char* part : {"what it is about", "12.00 s", "30.0 GiB", "a warning",
                           "attention FLOPs counted in full", "GiB = 2^30 bytes", "dense bf16 peak"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

/// Lines of the stage table, without what stands before and after.
std::vector<std::string> stage_rows(const Summary& summary) {
  std::istringstream lines(to_text(summary));
  std::vector<std::string> rows;
  std::string line;
  while (std::getline(lines, line) && !line.starts_with("Stages")) continue;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) rows.push_back(line);
  return rows;
}

TEST(TextResult, HasOneRowForRanksThatLookTheSame) {
  Summary summary = written_by_hand().summary();
  const std::vector<std::string> once = stage_rows(summary);
  ASSERT_EQ(once.size(), 2U);
  RankSummary another = summary.ranks[0];
  another.rank = 1;
  another.represents = 5;
  summary.ranks.insert(summary.ranks.begin() + 1, another);
  const std::vector<std::string> rows = stage_rows(summary);
  ASSERT_EQ(rows.size(), 2U);
  // Two ranks and five are seven.
  std::istringstream first(rows[0]);
  int stage = -1;
  int rank = -1;
  int ranks = -1;
  first >> stage >> rank >> ranks;
  EXPECT_EQ(stage, 0);
  EXPECT_EQ(rank, 0);
  EXPECT_EQ(ranks, 7);
  EXPECT_EQ(rows[1], once[1]);
  // One that takes more memory looks otherwise.
  summary.ranks[1].peak_memory *= 2;
  EXPECT_EQ(stage_rows(summary).size(), 3U);
}

// --- Assertions ---

bool holds(const std::string& assertion) {
  return check_assertion(written_by_hand().summary(), assertion).holds;
}

/// Message of the InputError that `action` throws; empty when it throws none.
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Assertions, CompareANumberOfTheResult) {
  EXPECT_TRUE(holds("step_time_s == 12"));
  EXPECT_FALSE(holds("step_time_s != 12"));
  EXPECT_TRUE(holds("step_time_s<=12"));
  EXPECT_TRUE(holds("step_time_s>=12"));
  EXPECT_FALSE(holds("step_time_s<12"));
  EXPECT_FALSE(holds("step_time_s>12"));
  EXPECT_FALSE(holds("step_time_s<11"));
  EXPECT_FALSE(holds("step_time_s>13"));
  EXPECT_TRUE(holds("step_time_s<13"));
  EXPECT_TRUE(holds("step_time_s>11"));
  EXPECT_TRUE(holds(" bubble_ratio < 3.1e-1 "));
  EXPECT_TRUE(holds("peak_memory_bytes <= 32212254720"));  // 30 GiB
  EXPECT_FALSE(holds("peak_memory_bytes < 32212254720"));
}

TEST(Assertions, ReachInsideWithDots) {
  EXPECT_TRUE(holds("ranks.0.busy_s == 6"));
  EXPECT_TRUE(holds("ranks.1.busy_s == 8"));
  EXPECT_TRUE(holds("breakdown.bubble == 2"));
  EXPECT_TRUE(holds("ranks.1.memory_at_peak.activations > 0"));
  EXPECT_TRUE(holds("plan.pipeline_parallel == 2"));
}

TEST(Assertions, CountBooleansAsZeroAndOne) {
  EXPECT_TRUE(holds("fits == 1"));
  EXPECT_FALSE(holds("fits < 1"));
}

TEST(Assertions, SayWhatTheyFound) {
  const AssertionResult result = check_assertion(written_by_hand().summary(), "ranks.0.busy_s<=5");
  EXPECT_FALSE(result.holds);
  EXPECT_EQ(result.text, "ranks.0.busy_s is 6.0, asserted <= 5.0");
}

TEST(Assertions, NameTheNumberThatWasProbablyMeant) {
  EXPECT_EQ(error_of([] { holds("buble_ratio<=0.1"); }),
            "--assert 'buble_ratio<=0.1': error: the result has no number 'buble_ratio'; did you mean "
            "'bubble_ratio'?");
  EXPECT_EQ(
      error_of([] { holds("breakdown.buble<=0.1"); }),
      "--assert 'breakdown.buble<=0.1': error: the result has no number 'breakdown.buble'; did you mean "
      "'breakdown.bubble'?");
  EXPECT_EQ(
      error_of([] { holds("zzz<=0.1"); }),
      "--assert 'zzz<=0.1': error: the result has no number 'zzz'; the numbers of the result are listed in "
      "docs/output.md");
}

TEST(Assertions, AcceptNumbersOnly) {
  for (const char* assertion :
       {"name==1", "breakdown<1", "ranks<1", "ranks.2.busy_s<1", "ranks.first.busy_s<1", "ranks..busy_s<1",
        "step_time_s.x<1", "warnings.0<1"}) {
    EXPECT_NE(error_of([&] { holds(assertion); }).find("the result has no number"), std::string::npos)
        << assertion;
  }
  Summary summary = written_by_hand().summary();
  summary.bubble_ratio_theory.reset();
  EXPECT_EQ(error_of([&] { check_assertion(summary, "bubble_ratio_theory<1"); }),
            "--assert 'bubble_ratio_theory<1': error: 'bubble_ratio_theory' has no value in this result; "
            "docs/output.md says when it has one");
}

TEST(Assertions, HaveAName) {
  EXPECT_EQ(asserted_name("run.days <= 40"), "run.days");
  EXPECT_EQ(asserted_name("mfu>0.1"), "mfu");
}

TEST(Assertions, MustBeWellFormed) {
  for (const char* assertion : {"", "mfu", "mfu=0.5", "mfu!0.5", "<=0.5", "mfu<=", "mfu<=half", "mfu<=0.5x",
                                "mfu<<1", "mfu=<1", "mfu<=inf", "mfu<=nan", "mfu>0.1 and hfu>0.1"}) {
    const std::string expected = "--assert '" + std::string(assertion) +
                                 "': error: not an assertion; write a name of the result, one of <= >= == != "
                                 "< >, and a number, such as "
                                 "'bubble_ratio<=0.10'";
    EXPECT_EQ(error_of([&] { holds(assertion); }), expected);
    EXPECT_EQ(error_of([&] { check_assertion_early(assertion); }), expected);
  }
}

TEST(Assertions, AreCheckedBeforeTheRunAsFarAsTheyCan) {
  EXPECT_EQ(error_of([] { check_assertion_early("mfu >= 0.5"); }), "");
  EXPECT_EQ(error_of([] { check_assertion_early("bubble_ratio_theory > -1e-3"); }), "");
  EXPECT_EQ(error_of([] { check_assertion_early("ranks.7.busy_s > 1"); }), "");
  EXPECT_EQ(error_of([] { check_assertion_early("buble_ratio<=0.1"); }),
            "--assert 'buble_ratio<=0.1': error: the result has no number 'buble_ratio'; did you mean "
            "'bubble_ratio'?");
}

// --- Numbers for people ---

TEST(Format, NumbersKeepTheirSignificantDigits) {
  EXPECT_EQ(number(12.345, 5), "12.345");
  EXPECT_EQ(number(3.14159), "3.142");
  EXPECT_EQ(number(0.00012345678), "0.0001235");
  EXPECT_EQ(number(123456.0), "123456");
  EXPECT_EQ(number(-2.5, 2), "-2.5");
  EXPECT_EQ(number(0), "0");
}

TEST(Format, NumbersThatRoundUpToAPowerOfTenHaveNoDigitMore) {
  EXPECT_EQ(number(9.9996), "10.00");
}

TEST(Format, PercentKeepsTwoDigitsOfSmallShares) {
  EXPECT_EQ(percent(0.273), "27.3 %");
  EXPECT_EQ(percent(1.0), "100.0 %");
  EXPECT_EQ(percent(0.00123), "0.12 %");
  EXPECT_EQ(percent(0.0), "0.0 %");
  EXPECT_EQ(percent(-0.05), "-5.0 %");
}

TEST(Format, DurationsHaveAReadableUnit) {
  EXPECT_EQ(duration(18.13), "18.13 s");
  EXPECT_EQ(duration(4.217e-3), "4.217 ms");
  EXPECT_EQ(duration(35.12e-6), "35.12 us");
  EXPECT_EQ(duration(1.0), "1.000 s");
  EXPECT_EQ(duration(0), "0 s");
}

TEST(Format, MemoryIsInGibibytes) {
  EXPECT_EQ(gib(Bytes{1} << 30), "1.00 GiB");
  EXPECT_EQ(gib((Bytes{61} << 30) + (Bytes{3} << 30) / 10), "61.3 GiB");
  EXPECT_EQ(gib(-(Bytes{1} << 29)), "-0.50 GiB");
}

TEST(Format, CountsHaveADecimalSuffix) {
  EXPECT_EQ(count(174.6e9), "174.6 B");
  EXPECT_EQ(count(1.008e12), "1.008 T");
  EXPECT_EQ(count(25.5e6), "25.50 M");
  EXPECT_EQ(count(1234), "1234");
}

TEST(Format, WrapsAtSpaces) {
  EXPECT_EQ(wrap("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrap("one two three", 6, 0), "one\ntwo\nthree");
  EXPECT_EQ(wrap("one", 2, 1), "one");  // longer than a line
  EXPECT_EQ(wrap("", 7, 2), "");
}

TEST(Format, WordsAndPadding) {
  EXPECT_EQ(words("optimizer_state"), "optimizer state");
  EXPECT_EQ(pad_left("ab", 4), "  ab");
  EXPECT_EQ(pad_right("ab", 4), "ab  ");
  EXPECT_EQ(pad_left("…", 3), "  …");  // one character of three bytes
  EXPECT_EQ(pad_right("abcde", 4), "abcde");
}

}  // namespace
}  // namespace trainsim::report
