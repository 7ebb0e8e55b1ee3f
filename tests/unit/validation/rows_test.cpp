// SPDX-License-Identifier: Apache-2.0
// How rows of measured runs are read and translated into configurations.
#include <string>

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "sim/config/experiment.hpp"
#include "sim/validation/row_reader.hpp"
#include "sim/validation/tree.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trainsim::validation {
namespace {

/// A complete row, as the file of one; `more` is added below it.
std::string complete(const std::string& more = "") {
  return R"(- id: run-1
  kind: train_step
  tier: A
  source: a paper
  model: {name: GPT, layers: 24, hidden: 2048, heads: 16, vocab: 51200, seq: 1024}
  plan: {tp: 2, pp: 2, dp: 2, mbs: 1, gbs: 16, recompute: full, optimizer_sharding: none (plain DP),
         precision: fp16 mixed, schedule: 1F1B}
  hardware: {gpu: A100-SXM4-80GB, count: 8, gpus_per_node: 8}
  measured: {iteration_time_s: 1.5}
)" + more;
}

RowSet read(const std::string& text) {
  const tests::TemporaryFolder folder;
  RowSet set;
  read_rows(folder.write("rows.yaml", text), set);
  return set;
}

Row only_row(const std::string& text) {
  const RowSet set = read(text);
  EXPECT_TRUE(set.problems.empty()) << set.problems.front();
  EXPECT_EQ(set.rows.size(), 1U);
  return set.rows.empty() ? Row{} : set.rows.front();
}

std::string only_problem(const std::string& text) {
  const RowSet set = read(text);
  EXPECT_EQ(set.problems.size(), 1U);
  return set.problems.empty() ? "" : set.problems.front();
}

TEST(Rows, ACompleteRowBecomesAConfiguration) {
  const Row row = only_row(complete());
  EXPECT_EQ(row.id, "run-1");
  EXPECT_EQ(row.source, "a paper");
  EXPECT_EQ(row.step_time, 1.5);
  EXPECT_EQ(row.sequences, 16);
  EXPECT_EQ(row.skipped, "");
  EXPECT_FALSE(row.incomplete);
  const config::Experiment experiment = config::resolve(row.config, {}, row.id);
  EXPECT_EQ(experiment.name, "run-1");
  EXPECT_EQ(experiment.model.num_layers, 24);
  EXPECT_EQ(experiment.cluster.gpu.name, "a100-80gb");
  EXPECT_EQ(experiment.plan.tensor_parallel, 2);
  EXPECT_EQ(experiment.plan.recompute.granularity, plan::RecomputeGranularity::kFull);
  EXPECT_EQ(experiment.plan.sharding, plan::Sharding::kNone);
  EXPECT_EQ(experiment.plan.precision, plan::Precision::kFp16);
  EXPECT_EQ(experiment.plan.schedule, plan::ScheduleKind::kOneFOneB);
}

TEST(Rows, DefaultsLieUnderEveryRow) {
  const std::string text = R"(source: a paper
defaults:
  kind: train_step
  tier: A
  model: {layers: 24, hidden: 2048, heads: 16, vocab: 51200, seq: 1024}
  plan: {tp: 2, pp: 2, mbs: 1, gbs: 16, recompute: none}
  hardware: {gpu: A100-SXM4-80GB, count: 8}
rows:
- {id: one, source: table 1, measured: {iteration_time_ms: 250}}
- {id: two, plan: {gbs: 32}, measured: {iteration_time_ms: 500}, fitted: some constant}
)";
  const RowSet set = read(text);
  ASSERT_EQ(set.rows.size(), 2U) << (set.problems.empty() ? "" : set.problems.front());
  EXPECT_EQ(set.rows[0].source, "a paper; table 1");
  EXPECT_EQ(set.rows[0].step_time, 0.25);
  EXPECT_EQ(number_at(set.rows[1].config, "plan.global_batch_size"), 32);
  EXPECT_EQ(number_at(set.rows[1].config, "plan.tensor_parallel"), 2);
  EXPECT_EQ(set.rows[1].fitted, "some constant");
}

TEST(Rows, TheirOwnConfigurationWins) {
  const Row row = only_row(complete(R"(  config:
    cluster: {extends: dgx-a100-80gb, nics_per_node: 4}
    plan: {gradient_dtype: fp16}
    software: {launch: blocking}
)"));
  const config::Experiment experiment = config::resolve(row.config, {}, row.id);
  EXPECT_EQ(experiment.cluster.nics_per_node, 4);
  EXPECT_EQ(experiment.plan.gradient_bytes, 2);
  EXPECT_EQ(experiment.plan.launch, plan::Launch::kBlocking);
}

TEST(Rows, RatesGiveTheStepTime) {
  // 16 sequences of 1024 tokens on 8 GPUs.
  const auto time_of = [](const std::string& measured) {
    std::string text = complete();
    const std::string old = "{iteration_time_s: 1.5}";
    return only_row(text.replace(text.find(old), old.size(), measured)).step_time.value();
  };
  EXPECT_DOUBLE_EQ(time_of("{tokens_per_s_per_gpu: 1024}"), 2.0);
  EXPECT_DOUBLE_EQ(time_of("{tokens_per_s: 4096}"), 4.0);
  EXPECT_DOUBLE_EQ(time_of("{samples_per_s: 8}"), 2.0);
  EXPECT_DOUBLE_EQ(time_of("{samples_per_gpu_s: 0.5}"), 4.0);
  EXPECT_DOUBLE_EQ(time_of("{mfu_pct: 40}\n  derived: {iteration_time_s: 3}"), 3.0);
}

TEST(Rows, LayerTimesAndProfiles) {
  std::string text = complete();
  text.replace(text.find("train_step"), 10, "layer_time");
  text.replace(text.find("iteration_time_s: 1.5"), 21, "forward_ms: 7.7, backward_ms: 11.9");
  const Row layer = only_row(text);
  ASSERT_TRUE(layer.layer_time);
  EXPECT_DOUBLE_EQ(layer.layer_time->forward, 7.7e-3);
  EXPECT_DOUBLE_EQ(layer.layer_time->backward, 11.9e-3);
  EXPECT_FALSE(layer.step_time);
  text = complete();
  text.replace(text.find("train_step"), 10, "schedule");
  text.replace(text.find("iteration_time_s: 1.5"), 21,
               "samples_per_gpu_s: 1, T_F_ms: 10, T_B_ms: 9, T_W_ms: 8");
  const config::Experiment experiment = config::resolve(only_row(text).config, {}, "");
  EXPECT_DOUBLE_EQ(experiment.plan.profile_of(0).forward, 10e-3);
  EXPECT_DOUBLE_EQ(experiment.plan.profile_of(0).backward, 17e-3);
}

TEST(Rows, FreeTextOfSourcesIsUnderstood) {
  const auto plan_with = [](const std::string& more) {
    std::string text = complete();
    const std::string old = "optimizer_sharding: none (plain DP)";
    return only_row(text.replace(text.find(old), old.size(), more));
  };
  const auto sharding = [&](const std::string& words) {
    return text_at(plan_with("optimizer_sharding: '" + words + "'").config, "plan.sharding");
  };
  EXPECT_EQ(sharding("ZeRO-1 (distributed optimizer)"), "zero1");
  EXPECT_EQ(sharding("FSDP full shard (ZeRO-3)"), "zero3");
  EXPECT_EQ(sharding("HSDP"), "fsdp");
  EXPECT_EQ(sharding("FSDP shard_grad_op (ZeRO-2)"), "zero2");
  EXPECT_EQ(sharding("ZeRO-0"), "none");
  EXPECT_EQ(plan_with("optimizer_sharding: ZeRO-1 within 8-GPU node").skipped,
            "sharding within a group of ranks is not supported by this version");
  const Row compiled = plan_with("torch_compile: true");
  EXPECT_EQ(text_at(compiled.config, "software.launch"), "compiled");
  EXPECT_EQ(text_at(compiled.config, "software.fusion"), "compiled");
}

TEST(Rows, NetworksBetweenNodesAreUnderstood) {
  const auto network = [](const std::string& inter) {
    std::string text = complete();
    text.replace(text.find("dp: 2"), 5, "dp: 4");
    const std::string old = "count: 8, gpus_per_node: 8";
    return only_row(text.replace(text.find(old), old.size(), "count: 16, gpus_per_node: 8" + inter));
  };
  const Row ports = network(", inter: 4x100Gb Omni-Path per node");
  EXPECT_EQ(text_at(ports.config, "cluster.nics_per_node"), "4");
  EXPECT_EQ(text_at(ports.config, "cluster.nic_bandwidth"), "100 Gb/s");
  EXPECT_EQ(config::resolve(network(", inter: 400 Gb/s per GPU").config, {}, "").cluster.nic.bandwidth, 50e9);
  const auto nic = [&network](const std::string& inter) {
    return config::resolve(network(", inter: " + inter).config, {}, "").cluster.nic.bandwidth;
  };
  EXPECT_EQ(nic("8x12.5Gb"), 12.5e9 / 8);
  EXPECT_EQ(nic("50 GB/s per GPU"), 50e9);
  EXPECT_EQ(nic("3200 Gbps per node"), 50e9);
  EXPECT_EQ(nic("800 Gb/s of InfiniBand per node"), 12.5e9);
  const Row shared = network(", inter: 800 Gb/s per node");
  EXPECT_EQ(config::resolve(shared.config, {}, "").cluster.nic.bandwidth, 12.5e9);
  EXPECT_FALSE(shared.incomplete);
  const Row unknown = network("");
  EXPECT_TRUE(unknown.incomplete);
  EXPECT_EQ(
      unknown.assumptions,
      std::vector<std::string>{"The network between nodes is not stated; that of dgx-a100-80gb is taken."});
}

TEST(Rows, AGatedModelIsTakenForALlama) {
  std::string text = complete();
  text.replace(text.find("seq: 1024"), 9, "seq: 1024, mlp: swiglu, ffn: 5504");
  const config::Experiment experiment = config::resolve(only_row(text).config, {}, "");
  EXPECT_EQ(experiment.model.normalization, model::Normalization::kRmsNorm);
  EXPECT_EQ(experiment.model.position_embedding, model::PositionEmbedding::kRotary);
  EXPECT_FALSE(experiment.model.linear_bias);
  EXPECT_FALSE(experiment.model.tie_word_embeddings);
}

TEST(Rows, WhatIsMissingIsAssumedAndSaid) {
  std::string text = complete();
  text.replace(text.find(", heads: 16, vocab: 51200"), 25, "");
  text.replace(text.find(", recompute: full"), 17, "");
  const Row row = only_row(text);
  EXPECT_TRUE(row.incomplete);
  EXPECT_EQ(row.assumptions.size(), 3U);
  // 2048 / 128 = 16 heads, which two ranks can share.
  EXPECT_EQ(text_at(row.config, "model.num_attention_heads"), "16");
  EXPECT_EQ(text_at(row.config, "model.vocab_size"), "50257");
  EXPECT_EQ(text_at(row.config, "plan.recompute"), "none");
}

TEST(Rows, ExpertsAndLatentAttentionAreTranslated) {
  std::string text = complete();
  text.replace(text.find("seq: 1024"), 9,
               "seq: 1024, attention: MLA q_lora1536, moe: {experts: 8, topk: 2, expert_ffn: 512, shared: 2, "
               "dense_layers: 1}");
  const Row row = only_row(text);
  EXPECT_EQ(row.skipped, "");
  EXPECT_EQ(text_at(row.config, "model.experts.count"), "8");
  EXPECT_EQ(text_at(row.config, "model.experts.per_token"), "2");
  EXPECT_EQ(text_at(row.config, "model.experts.intermediate_size"), "512");
  EXPECT_EQ(text_at(row.config, "model.experts.shared_intermediate_size"), "1024");
  EXPECT_EQ(text_at(row.config, "model.experts.dense_layers"), "1");
  EXPECT_EQ(text_at(row.config, "model.activation"), "swiglu");
  EXPECT_EQ(text_at(row.config, "model.latent_attention.kv_lora_rank"), "512");
}

TEST(Rows, WhatCannotBeAssumedIsAReasonToSkip) {
  const auto skipped = [](const std::string& old, const std::string& now) {
    std::string text = complete();
    return only_row(text.replace(text.find(old), old.size(), now)).skipped;
  };
  EXPECT_EQ(skipped("mbs: 1, gbs: 16", "mbs: null"), "incomplete: plan.mbs, plan.gbs unknown");
  EXPECT_EQ(skipped("A100-SXM4-80GB", "P100-SXM2-16GB"), "there is no preset for the GPU 'P100-SXM2-16GB'");
  EXPECT_EQ(skipped("kind: train_step", "kind: lora"), "rows of kind 'lora' are not simulated");
  EXPECT_EQ(skipped("tier: A", "tier: C"), "tier C: a secondary source");
  EXPECT_EQ(skipped("iteration_time_s: 1.5", "tflops: 3"), "neither time nor memory was measured");
  EXPECT_EQ(skipped("seq: 1024", "seq: 1024, attention: linear"),
            "attention 'linear' is not supported by this version");
}

TEST(Rows, MemoryIsReadInTheUnitAndKindThatItIsGivenIn) {
  const auto row_with = [](const std::string& measured) {
    std::string text = complete();
    return only_row(text.replace(text.find("iteration_time_s: 1.5"), 21, measured));
  };
  EXPECT_TRUE(row_with("oom: true").out_of_memory.value());
  const Row device = row_with("peak_memory_GB: 3");
  ASSERT_EQ(device.memory.size(), 1U);
  EXPECT_EQ(device.memory[0].bytes, 3'000'000'000);
  EXPECT_EQ(device.memory[0].kind, MemoryKind::kDevice);
  EXPECT_FALSE(device.out_of_memory.value());
  EXPECT_EQ(row_with("peak_memory_GiB: 1, memory_counts: reserved").memory.at(0).kind, MemoryKind::kReserved);
  EXPECT_FALSE(row_with("peak_memory_GiB: 1").memory_of_first);
  EXPECT_FALSE(row_with("peak_memory_GiB: 1, memory_of: fullest").memory_of_first);
  EXPECT_TRUE(row_with("peak_memory_GiB: 1, memory_of: first").memory_of_first);
  const Row both = row_with("peak_alloc_GiB: 1, peak_reserved_GiB: 2, memory_counts: device");
  ASSERT_EQ(both.memory.size(), 2U);
  EXPECT_EQ(both.memory[0].kind, MemoryKind::kAllocated);
  EXPECT_EQ(both.memory[1].bytes, Bytes{2} << 30);
}

TEST(Rows, AMalformedRowIsReportedAndTheOthersGoOn) {
  std::string second = complete();
  second.replace(second.find("run-1"), 5, "run-2");
  const RowSet set = read(complete("- 17\n") + second);
  EXPECT_EQ(set.rows.size(), 2U);
  ASSERT_EQ(set.problems.size(), 1U);
  EXPECT_NE(set.problems[0].find(":10:3: error: a measured run is a mapping"), std::string::npos)
      << set.problems[0];
  EXPECT_EQ(set.malformed_families.size(), 1U);
}

TEST(Rows, ProblemsNameTheirPlace) {
  std::string text = complete();
  text.replace(text.find("pp: 2"), 5, "ppp: 2");
  EXPECT_NE(
      only_problem(text).find(":6:17: error: plan.ppp: is not a key of a measured run; did you mean pp?"),
      std::string::npos)
      << only_problem(text);
  text = complete();
  text.replace(text.find("1.5"), 3, "fast");
  EXPECT_NE(only_problem(text).find(":9:32: error: measured.iteration_time_s: "), std::string::npos)
      << only_problem(text);
  EXPECT_NE(only_problem("- {kind: train_step}\n").find("id: is missing"), std::string::npos);
  EXPECT_NE(only_problem("- {id: x}\n").find("kind: is missing"), std::string::npos);
  EXPECT_NE(only_problem("- {id: x, kind: train_step, model: 3}\n").find("model: needs a mapping"),
            std::string::npos);
}

TEST(Rows, AnIdUsedTwiceIsReportedAndTheFirstRowStays) {
  const RowSet set = read(complete() + complete());
  EXPECT_EQ(set.rows.size(), 1U);
  ASSERT_EQ(set.problems.size(), 1U);
  EXPECT_NE(set.problems[0].find(":10:3: error: id: 'run-1' is also the id of the row in line 1"),
            std::string::npos)
      << set.problems[0];
}

TEST(Rows, AFileWithoutRowsIsReported) {
  EXPECT_NE(only_problem("key: value\n").find("is a list, or a mapping with a list below 'rows'"),
            std::string::npos);
  EXPECT_NE(only_problem("- [\n").find("error: "), std::string::npos);
  const RowSet set = read("rows: []\nruns: 3\n");
  EXPECT_EQ(set.problems.size(), 1U);
  EXPECT_TRUE(set.rows.empty());
}

TEST(Rows, PlansOfOneModelAreAGroup) {
  std::string other = complete();
  other.replace(other.find("tp: 2, pp: 2"), 12, "tp: 4, pp: 1");
  other.replace(other.find("gbs: 16"), 7, "gbs: 20");
  EXPECT_EQ(only_row(complete()).group,
            "24 x 2048, 16 heads, batch about 16 x 1024, 8 A100-SXM4-80GB, fp16 mixed");
  EXPECT_NE(only_row(complete()).group, only_row(other).group);
  EXPECT_EQ(only_row(complete("  group: mine\n")).group, "mine");
}

TEST(Files, AreSortedAndMustExist) {
  const tests::TemporaryFolder folder;
  for (const char* name : {"b.yaml", "a.yaml", "c.csv"}) folder.write(name, "");
  const auto found = files_of(folder.path(), "yaml");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].filename(), "a.yaml");
  EXPECT_EQ(files_of(folder.path() / "c.csv", "csv").size(), 1U);
  EXPECT_TRUE(files_of(folder.path() / "c.csv", "yaml").empty());
  EXPECT_THROW(files_of(folder.path() / "missing", "yaml"), InputError);
}

}  // namespace
}  // namespace trainsim::validation
