// SPDX-License-Identifier: Apache-2.0
#include "sim/report/summary.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/engine/executor.hpp"
#include "sim/report/format.hpp"
#include "sim/report/writers.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::report {
namespace {

using plan::ParallelPlan;
using program::Cause;
using program::MemoryCategory;
using tests::gpt;
using tests::split_plan;

/// A job and its timeline, written by hand or simulated, with all that a summary refers to.
struct Outcome {
  model::ModelSpec model;
  hardware::ClusterSpec cluster;
  ParallelPlan plan;
  program::Job job;
  program::Timeline timeline;
  FlopsPerSecond peak = 0;
  Seconds single_gpu_time = 0;
  std::string name = "run";

  Summary summary() const {
    return summarize({name,
                      "what it is about",
                      model,
                      cluster,
                      plan,
                      job,
                      timeline,
                      "ideal",
                      peak,
                      single_gpu_time,
                      schedule::bubble_ratio_theory(plan),
                      {"a warning"},
                      0.5});
  }
};

Outcome simulated(const model::ModelSpec& model, const ParallelPlan& plan, bool free_communication = false) {
  Outcome outcome{model, tests::round_cluster(), plan, {}, {}};
  outcome.job = tests::make_job(model, outcome.cluster, plan, {true, free_communication});
  outcome.timeline = engine::make_ideal_executor()->run(outcome.job);
  outcome.peak = lowering::peak_flops(outcome.cluster.gpu, plan);
  outcome.single_gpu_time = lowering::single_gpu_time(model, plan, outcome.cluster.gpu);
  return outcome;
}

program::RankTimeline rank_timeline(Seconds first, Seconds last, Seconds busy,
                                    const std::vector<std::pair<Cause, Seconds>>& causes) {
  program::RankTimeline rank;
  rank.first_slot = first;
  rank.last_slot = last;
  rank.busy = busy;
  for (const auto& [cause, seconds] : causes) rank.by_cause[static_cast<std::size_t>(cause)] = seconds;
  return rank;
}

/// A step of 12 s on two stages, each of two data-parallel ranks, B = 8 sequences of 256 tokens.
Outcome written_by_hand() {
  Outcome outcome{gpt({2}), tests::round_cluster(), split_plan({1, 2, 1, 2}, 4), {}, {}};
  outcome.peak = 10e12;
  outcome.single_gpu_time = 24;
  outcome.job.world_size = 4;
  outcome.job.folded = true;
  outcome.job.programs.resize(2);
  outcome.job.programs[0].flops = 100e12;
  outcome.job.programs[1].flops = 50e12;
  outcome.job.programs[1].slots = {{'F', 0, 0}, {'B', 3, 1}};
  outcome.job.ranks.resize(2);
  for (std::uint32_t stage : {0U, 1U}) {
    outcome.job.ranks[stage].stage = stage;
    outcome.job.ranks[stage].program = stage;
    outcome.job.ranks[stage].id = 2 * stage;
    outcome.job.ranks[stage].represents = 2;
  }
  outcome.timeline.step_time = 12;
  outcome.timeline.ranks = {
      rank_timeline(
          0, 8, 6,
          {{Cause::kForward, 2}, {Cause::kBackward, 4}, {Cause::kBubble, 2}, {Cause::kImbalance, 4}}),
      rank_timeline(
          2, 10, 8,
          {{Cause::kForward, 3}, {Cause::kBackward, 5}, {Cause::kBubble, 2}, {Cause::kOptimizer, 2}})};
  program::RankTimeline& fullest = outcome.timeline.ranks[1];
  fullest.peak_memory = Bytes{30} << 30;
  fullest.peak_slot = 1;
  fullest.memory_at_peak[static_cast<std::size_t>(MemoryCategory::kActivations)] = fullest.peak_memory;
  outcome.timeline.ranks[0].peak_memory = Bytes{20} << 30;
  return outcome;
}

constexpr double kTight = 1e-12;

TEST(SummaryDefinitions, BubbleRatioIsIdleTimeOfThePipelinesWindow) {
  // From the first slot at 0 to the last at 10: 1 - (6 + 8) / (2 * 10).
  const Summary summary = written_by_hand().summary();
  EXPECT_NEAR(summary.bubble_ratio, 0.3, kTight);
  EXPECT_NEAR(summary.ranks[0].bubble, 4, kTight);
  EXPECT_NEAR(summary.ranks[1].bubble, 2, kTight);
  EXPECT_EQ(summary.ranks[0].busy, 6);
}

TEST(SummaryDefinitions, BubbleRatioOfAStageDividesByTheLongestSpan) {
  // Both stages span 8 s: 1 - (6 + 8) / (2 * 8).
  EXPECT_NEAR(written_by_hand().summary().bubble_ratio_stage, 0.125, kTight);
}

TEST(SummaryDefinitions, BubbleRatioInTheoryIsTheClosedForm) {
  // (p - 1) / (m + p - 1) = 1 / 5; three of eleven for the worked example of four stages and eight
  // micro-batches.
  EXPECT_NEAR(written_by_hand().summary().bubble_ratio_theory.value(), 0.2, kTight);
  const Outcome outcome = simulated(gpt({4}), split_plan({1, 4, 1, 1}, 8));
  EXPECT_NEAR(outcome.summary().bubble_ratio_theory.value(), 3.0 / 11.0, kTight);
}

TEST(SummaryDefinitions, BreakdownIsTheMeanOverRanks) {
  const Summary summary = written_by_hand().summary();
  const auto of = [&](Cause cause) { return summary.breakdown[static_cast<std::size_t>(cause)]; };
  EXPECT_NEAR(of(Cause::kForward), 2.5, kTight);
  EXPECT_NEAR(of(Cause::kBackward), 4.5, kTight);
  EXPECT_NEAR(of(Cause::kBubble), 2, kTight);
  EXPECT_NEAR(of(Cause::kOptimizer), 1, kTight);
  EXPECT_NEAR(of(Cause::kImbalance), 2, kTight);
}

TEST(SummaryDefinitions, MeansWeighARankByHowManyItRepresents) {
  Outcome outcome = written_by_hand();
  outcome.job.ranks[0].represents = 1;
  outcome.job.ranks[1].represents = 3;
  const Summary summary = outcome.summary();
  EXPECT_NEAR(summary.breakdown[static_cast<std::size_t>(Cause::kForward)], (2 + 3 * 3) / 4.0, kTight);
  EXPECT_NEAR(summary.bubble_ratio, 1 - (6 + 3 * 8) / 40.0, kTight);
  EXPECT_NEAR(summary.hardware_flops, 100e12 + 3 * 50e12, 1);
}

TEST(SummaryDefinitions, RatesFollowFromTheStepTime) {
  const Summary summary = written_by_hand().summary();
  EXPECT_NEAR(summary.samples_per_second, 8.0 / 12, kTight);
  EXPECT_NEAR(summary.tokens_per_second, 8.0 * 256 / 12, 1e-9);
  EXPECT_NEAR(summary.tokens_per_second_per_gpu, 8.0 * 256 / 12 / 4, 1e-9);
}

TEST(SummaryDefinitions, UtilisationIsFlopsOverPeakOfAllGpus) {
  const Summary summary = written_by_hand().summary();
  // L = 2, h = 512, s = 256, V = 8192: 72 * 8 * 2 * 256 * 512^2 (1 + 256 / 3072 + 8192 / 12,288) = 135.29e9.
  const double model_flops = 72.0 * 8 * 2 * 256 * 512 * 512 * (1 + 1.0 / 12 + 2.0 / 3);
  EXPECT_NEAR(summary.model_flops, model_flops, 1e-6);
  EXPECT_NEAR(summary.mfu, model_flops / (12 * 4 * 10e12), kTight);
  EXPECT_NEAR(summary.model_tflops_per_gpu, model_flops / 12 / 4 / 1e12, kTight);
  // Two ranks of each stage: 2 * (100 + 50) TFLOP in 12 s on four GPUs of 10 TFLOP/s.
  EXPECT_NEAR(summary.hardware_flops, 300e12, 1);
  EXPECT_NEAR(summary.hardware_tflops_per_gpu, 6.25, kTight);
  EXPECT_NEAR(summary.hfu, 0.625, kTight);
}

TEST(SummaryDefinitions, ScalingEfficiencyComparesWithOneGpu) {
  // 24 s on one GPU, 4 * 12 s on four.
  EXPECT_NEAR(written_by_hand().summary().scaling_efficiency, 0.5, kTight);
}

TEST(SummaryDefinitions, MemoryIsTheFullestRanks) {
  Outcome outcome = written_by_hand();
  outcome.plan.memory_reserve = Bytes{50} << 30;
  const Summary summary = outcome.summary();
  EXPECT_EQ(summary.peak_memory, Bytes{30} << 30);
  EXPECT_EQ(fullest_rank(summary).rank, 2);
  EXPECT_EQ(fullest_rank(summary).peak_at, "backward of micro-batch 3, chunk 1");
  EXPECT_EQ(summary.memory_headroom, 0);  // 80 - 50 - 30 GiB
  EXPECT_TRUE(summary.fits);
  outcome.plan.memory_reserve += 1;
  EXPECT_EQ(outcome.summary().memory_headroom, -1);
  EXPECT_FALSE(outcome.summary().fits);
}

/// Plans that use every kind of communication.
std::vector<ParallelPlan> varied_plans() {
  std::vector<ParallelPlan> plans = {split_plan({1, 1, 1, 1}, 4), split_plan({4, 1, 1, 2}, 2),
                                     split_plan({1, 4, 1, 2}, 8), split_plan({2, 2, 2, 4}, 4)};
  plans[1].sequence_parallel = true;
  plans[1].sharding = plan::Sharding::kZero1;
  plans[2].recompute.granularity = plan::RecomputeGranularity::kFull;
  plans[3].overlap_point_to_point = true;
  return plans;
}

TEST(SummaryOfARun, HasABreakdownThatAddsUpToTheStep) {
  for (const ParallelPlan& plan : varied_plans()) {
    const Summary summary = simulated(gpt({8}), plan).summary();
    ASSERT_GT(summary.step_time, 0);
    const auto total = [](const auto& causes) { return std::accumulate(causes.begin(), causes.end(), 0.0); };
    EXPECT_NEAR(total(summary.breakdown), summary.step_time, 1e-9);
    for (const Seconds seconds : summary.breakdown) EXPECT_GE(seconds, -1e-12);
    for (const RankSummary& rank : summary.ranks) EXPECT_NEAR(total(rank.by_cause), summary.step_time, 1e-9);
  }
}

TEST(SummaryOfARun, HasRanksThatRepresentTheWorld) {
  for (const ParallelPlan& plan : varied_plans()) {
    const Summary summary = simulated(gpt({8}), plan).summary();
    std::int64_t represented = 0;
    std::int64_t layers = 0;
    for (const RankSummary& rank : summary.ranks) {
      represented += rank.represents;
      layers += rank.layers * rank.represents;
    }
    EXPECT_EQ(represented, plan.gpus);
    EXPECT_EQ(layers, 8 * plan.tensor_parallel * plan.data_parallel);
  }
}

TEST(SummaryOfARun, CountsMoreHardwareThanModelFlopsOnlyWithRecomputation) {
  ParallelPlan plan = split_plan({2, 2, 1, 1}, 4);
  const Summary plain = simulated(gpt({8}), plan).summary();
  EXPECT_NEAR(plain.hfu, plain.mfu, 1e-9 * plain.mfu);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  const Summary full = simulated(gpt({8}), plan).summary();
  // 96 (1 + s/6h + V/16Lh) against 72 (1 + s/6h + V/12hL): 96 (1 + 1/12 + 1/8) / 72 (1 + 1/12 + 1/6).
  EXPECT_NEAR(full.hfu / full.mfu, 96.0 * 29 / 24 / (72.0 * 30 / 24), 1e-9);
}

TEST(SummaryOfARun, ScalesPerfectlyOnOneGpuWithoutRecomputation) {
  for (const auto attention : {model::Attention::kStandard, model::Attention::kFlash}) {
    model::ModelSpec model = gpt({8});
    model.attention = attention;
    EXPECT_NEAR(simulated(model, split_plan({}, 4)).summary().scaling_efficiency, 1.0, 1e-6);
    model.tie_word_embeddings = false;
    EXPECT_NEAR(simulated(model, split_plan({}, 1, 3)).summary().scaling_efficiency, 1.0, 1e-6);
  }
}

TEST(SummaryOfARun, ScalesWorseWithRecomputationAndWithMoreGpus) {
  ParallelPlan plan = split_plan({}, 4);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  // A quarter of the work is done again; the head and the optimizer are not.
  const double recomputing = simulated(gpt({8}), plan).summary().scaling_efficiency;
  EXPECT_LT(recomputing, 0.95);
  EXPECT_GT(recomputing, 0.75);
  for (const ParallelPlan& split : {split_plan({4}, 4), split_plan({1, 4}, 4), split_plan({1, 1, 1, 4}, 4)}) {
    EXPECT_LT(simulated(gpt({8}), split).summary().scaling_efficiency, 1.0);
  }
}

TEST(SummaryOfARun, ComparesWithOneGpuThatRecomputesAndSplitsNothing) {
  ParallelPlan plan = split_plan({}, 4);
  const Seconds alone = simulated(gpt({8}), plan).single_gpu_time;
  for (const auto granularity : {plan::RecomputeGranularity::kSelective, plan::RecomputeGranularity::kFull}) {
    plan.recompute.granularity = granularity;
    EXPECT_DOUBLE_EQ(simulated(gpt({8}), plan).single_gpu_time, alone);
  }
  plan = split_plan({2, 2, 1, 1}, 4);
  plan.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(simulated(gpt({8}), plan).single_gpu_time, alone);
}

TEST(SummaryOfARun, ScalesPerfectlyOnOneGpuWithAProfile) {
  ParallelPlan plan = split_plan({}, 4);
  plan.profile = plan::StageProfile{3e-3, 5e-3};
  EXPECT_NEAR(simulated(gpt({8}), plan).summary().scaling_efficiency, 1.0, 1e-6);
}

// --- Formats ---

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
      "mfu,hfu,bubble_ratio,bubble_ratio_stage,bubble_ratio_theory,scaling_efficiency,fits,peak_memory_bytes,"
      "memory_headroom_bytes,";
  const std::string breakdown =
      "breakdown_forward_s,breakdown_backward_s,breakdown_recompute_s,breakdown_optimizer_s,"
      "breakdown_tensor_communication_s,breakdown_pipeline_communication_s,breakdown_data_communication_s,"
      "breakdown_embedding_communication_s,breakdown_bubble_s,breakdown_imbalance_s,"
      "breakdown_launch_s";
  EXPECT_TRUE(to_csv(written_by_hand().summary()).starts_with(plan + scalars + breakdown + "\n"));
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
  EXPECT_NE(error_of([&] { check_assertion(summary, "bubble_ratio_theory<1"); }), "");
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
