// SPDX-License-Identifier: Apache-2.0
#include "sim/config/experiment.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

class Load : public InputFolder {};

std::string default_of(const Experiment& experiment, const std::string& field) {
  const auto found = std::find_if(experiment.defaults.begin(), experiment.defaults.end(),
                                  [&](const auto& each) { return each.first == field; });
  return found == experiment.defaults.end() ? "(given)" : found->second;
}

TEST_F(Load, FillsEveryPart) {
  const Experiment run =
      loaded(configuration("{tensor_parallel: 2, pipeline_parallel: 4, gradient_accumulation: 4}",
                           "gpus: 16\ndescription: a run\n"));
  EXPECT_EQ(run.name, "run");
  EXPECT_EQ(run.description, "a run");
  EXPECT_EQ(run.model.name, "small");
  EXPECT_EQ(run.model.head_dim, 64);             // 1024 / 16
  EXPECT_EQ(run.model.intermediate_size, 4096);  // 4 * 1024
  EXPECT_EQ(run.model.num_key_value_heads, 16);
  EXPECT_EQ(run.cluster.name, "box");
  EXPECT_EQ(run.cluster.gpu.name, "chip");
  EXPECT_EQ(run.cluster.gpu.memory, 85'899'345'920);  // 80 * 2^30
  EXPECT_EQ(run.cluster.gpu.peak_fp8, 0.0);
  EXPECT_EQ(run.cluster.nic.bandwidth, 25e9);
  EXPECT_EQ(run.cluster.fabric.kind, hardware::FabricKind::kFatTree);
  EXPECT_EQ(run.plan.data_parallel, 2);               // 16 / (2 * 4)
  EXPECT_EQ(run.plan.global_batch_size, 8);           // 1 * 2 * 4
  EXPECT_EQ(run.plan.memory_reserve, 1'610'612'736);  // 1.5 * 2^30
  EXPECT_EQ(run.network, NetworkMode::kFlow);
  EXPECT_TRUE(run.warnings.empty());
}

TEST_F(Load, RecordsDefaultsInSchemaOrder) {
  const Experiment run = loaded(configuration("{tensor_parallel: 2}"));
  EXPECT_EQ(default_of(run, "plan.tensor_parallel"), "(given)");
  EXPECT_EQ(default_of(run, "plan.data_parallel"), "8");
  EXPECT_EQ(default_of(run, "plan.gradient_accumulation"), "1");
  EXPECT_EQ(default_of(run, "plan.schedule"), "1f1b");
  EXPECT_EQ(default_of(run, "plan.overlap_point_to_point"), "false");
  EXPECT_EQ(default_of(run, "memory.reserve"), "1.5 GiB");
  EXPECT_EQ(default_of(run, "simulation.network"), "flow");
  std::vector<std::string> sections;
  for (const auto& [field, value] : run.defaults) {
    const std::string section = field.substr(0, field.find('.'));
    if (sections.empty() || sections.back() != section) sections.push_back(section);
  }
  EXPECT_EQ(sections,
            (std::vector<std::string>{"model", "cluster", "plan", "software", "memory", "simulation"}));
}

TEST_F(Load, ChoosesTheScheduleFromTheChunks) {
  const Experiment run =
      loaded(configuration("{pipeline_parallel: 4, virtual_pipeline: 2, global_batch_size: 32}"));
  EXPECT_EQ(run.plan.schedule, plan::ScheduleKind::kInterleaved);
  EXPECT_TRUE(run.plan.overlap_point_to_point);
}

TEST_F(Load, ReadsRecomputationByOperators) {
  for (const char* value : {"operators", "{granularity: operators}"}) {
    const Experiment run = loaded(configuration(std::string("{sharding: zero3, recompute: ") + value + "}"));
    EXPECT_EQ(run.plan.recompute.granularity, plan::RecomputeGranularity::kOperators);
  }
}

/// torchtitan and Hugging Face have a module each for Llama's; MPT's Wqkv is one.
TEST_F(Load, TakesLinearsOfOneInputAsTheFrameworkHasThem) {
  using plan::FusedLinears;
  const auto fused = [this](const std::string& plan, const std::string& software) {
    return loaded(configuration(plan, "gpus: 8\n" + software)).plan.fused_linears;
  };
  EXPECT_EQ(fused("{}", ""), (FusedLinears{true, true}));
  EXPECT_EQ(fused("{sharding: zero3}", ""), (FusedLinears{true, true}));
  EXPECT_EQ(fused("{sharding: zero3}", "software: {fused_linears: []}\n"), (FusedLinears{false, false}));
  EXPECT_EQ(plan::usual_fused_linears(plan::Framework::kFsdp, true), (FusedLinears{false, false}));
  EXPECT_EQ(plan::usual_fused_linears(plan::Framework::kInternEvo, true), (FusedLinears{true, false}));
  EXPECT_EQ(plan::usual_fused_linears(plan::Framework::kDeepSpeed, true), (FusedLinears{true, true}));
}

TEST_F(Load, ReadsMappingsForFinerControl) {
  const Experiment run = loaded(configuration(
      "{recompute: {granularity: full, method: block, layers: 3}, sharding: {stage: 1}, gradient_dtype: bf16,"
      " profile: {forward: 10 ms, backward: 20 ms}, pipeline_parallel: 2, pipeline_layout: [13, 11]}"));
  EXPECT_EQ(run.plan.recompute.granularity, plan::RecomputeGranularity::kFull);
  EXPECT_EQ(run.plan.recompute.method, plan::RecomputeMethod::kBlock);
  EXPECT_EQ(run.plan.recompute.layers, 3);
  EXPECT_EQ(run.plan.sharding, plan::Sharding::kZero1);
  EXPECT_EQ(run.plan.gradient_bytes, 2);
  ASSERT_EQ(run.plan.profile.size(), 1U);
  EXPECT_DOUBLE_EQ(run.plan.profile_of(1).forward, 0.01);
  EXPECT_DOUBLE_EQ(run.plan.profile_of(1).backward, 0.02);
  EXPECT_EQ(run.plan.pipeline_layout, (std::vector<std::int64_t>{13, 11}));
}

TEST_F(Load, ReadsMeasuredTimesOfEachStage) {
  const Experiment run = loaded(
      configuration("{pipeline_parallel: 2, profile: [{forward: 10 ms, backward: 20 ms}, {forward: 11 ms, "
                    "backward: 23 ms}]}"));
  EXPECT_DOUBLE_EQ(run.plan.profile_of(0).forward, 0.01);
  EXPECT_DOUBLE_EQ(run.plan.profile_of(1).backward, 0.023);
}

TEST_F(Load, LetsPlanAndSoftwareChangeTheModel) {
  const Experiment run =
      loaded(configuration("{sequence_length: 4096}", "gpus: 8\nsoftware: {attention: standard}\n"));
  EXPECT_EQ(run.model.sequence_length, 4096);
  EXPECT_EQ(run.model.max_position_embeddings, 4096);
  EXPECT_EQ(run.model.attention, model::Attention::kStandard);
}

TEST_F(Load, AppliesOverridesWithAllChecks) {
  const std::string path = configuration("{tensor_parallel: 2}");
  const Experiment run =
      loaded(path, {"model.num_layers=4", "cluster.nic_bandwidth=100 Gb/s", "plan.tensor_parallel=4"});
  EXPECT_EQ(run.model.num_layers, 4);
  EXPECT_EQ(run.model.name, "small (modified)");
  EXPECT_EQ(run.cluster.nic.bandwidth, 12.5e9);
  EXPECT_EQ(run.plan.data_parallel, 4);
  EXPECT_EQ(error_of(path, {"plan.tensor_parallel=3"}),
            "run.yaml:3:7: error: gpus: 16 is not a multiple of tensor_parallel 3 x pipeline_parallel 1 = 3; "
            "nearest "
            "legal: 6 or 24\n"
            "    3 | gpus: 16\n      |       ^\n"
            "--set plan.tensor_parallel=3:1:22: error: plan.tensor_parallel: 3 does not divide the 16 "
            "attention heads; "
            "legal here: 1, 2, 4, 8, 16\n"
            "    1 | plan.tensor_parallel=3\n      |                      ^\n"
            "--set plan.tensor_parallel=3:1:22: error: plan.tensor_parallel: 3 does not divide the "
            "intermediate_size "
            "4096; legal here: 1, 2, 4, 8, 16\n"
            "    1 | plan.tensor_parallel=3\n      |                      ^");
}

TEST_F(Load, OverridesTheShorthandThatAFileUses) {
  const std::string path =
      write("run.yaml", "model: small\ncluster: {extends: box, nic_bandwidth: 50 Gb/s}\ngpus: 8\nplan: {}\n");
  EXPECT_EQ(loaded(path).cluster.nic.bandwidth, 6.25e9);
  EXPECT_EQ(loaded(path, {"cluster.nic_bandwidth=100 Gb/s"}).cluster.nic.bandwidth, 12.5e9);
}

TEST_F(Load, PointsAtTheNearestFieldThatIsThere) {
  EXPECT_EQ(
      error_of(configuration("\n  pipeline_parallel: 4\n  virtual_pipeline: 2")),
      "run.yaml:4:1: error: plan.global_batch_size: the global batch of 4 makes 1 micro-batch, but schedule: "
      "interleaved needs a multiple of pipeline_parallel 4; nearest legal global_batch_size: 16\n"
      "    4 | plan: \n      | ^");
}

TEST_F(Load, LeavesOutChecksOfWhatCouldNotBeRead) {
  // The batch of 100 may well fit the micro-batch that was meant, so only the key is reported.
  EXPECT_EQ(error_of(configuration("{micro_batchsize: 4, global_batch_size: 100}")),
            "run.yaml:4:8: error: plan.micro_batchsize: unknown key; did you mean micro_batch_size?\n"
            "    4 | plan: {micro_batchsize: 4, global_batch_size: 100}\n      |        ^");
}

TEST_F(Load, WarnsInSentencesThatStartWithTheField) {
  const Experiment run = loaded(configuration("{sequence_parallel: true}"));
  EXPECT_EQ(run.warnings,
            std::vector<std::string>{"plan.sequence_parallel: true has no effect with tensor_parallel 1"});
}

TEST_F(Load, FindsPresetConfigurationsByName) {
  write("configs/first.yaml", "model: small\ncluster: box\ngpus: 8\nplan: {}\n");
  EXPECT_EQ(loaded("first").name, "first");
  EXPECT_EQ(error_of("frist"),
            "frist: error: no such file, and no preset configuration is called so; did you mean first?");
}

TEST_F(Load, AcceptsANodeWithoutNetwork) {
  const std::string path =
      write("run.yaml",
            "model: small\ncluster:\n  gpu: chip\n  gpus_per_node: 4\n"
            "  intra_node: {kind: pcie, bandwidth: 32 GB/s, efficiency: 1, latency: 1 us}\n"
            "  collective_latency: 1 us\n  point_to_point_latency: 1 us\ngpus: 4\nplan: {}\n");
  const Experiment run = loaded(path);
  EXPECT_EQ(run.cluster.name, "inline");
  EXPECT_EQ(run.cluster.nics_per_node, 0);
  EXPECT_EQ(run.cluster.intra_node_kind, hardware::IntraNodeKind::kPcie);
}

TEST_F(Load, TakesNotesAsTextOrMapping) {
  write("models/noted.yaml", "extends: small\nsource: {num_layers: a paper, hidden_size: another}\n");
  const std::string path = write("run.yaml", "model: noted\ncluster: box\ngpus: 8\nplan: {}\n");
  EXPECT_EQ(loaded(path).model.name, "noted");
}

class Presets : public InputFolder {};

TEST_F(Presets, AreListedWithTheirNotes) {
  write("models/large.yaml", "source: a paper\nnum_layers: 2\n");
  write("models/broken.yaml", "a: [\n");
  const std::vector<Preset> models = list_presets("models");
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].name, "broken");
  EXPECT_EQ(models[0].note, "");
  EXPECT_EQ(models[1].name, "large");
  EXPECT_EQ(models[1].note, "a paper");
  EXPECT_EQ(models[2].name, "small");
  EXPECT_EQ(list_presets("gpus").size(), 1u);
  EXPECT_TRUE(list_presets("nonsense").empty());
}

TEST_F(Presets, LoadOnTheirOwn) {
  EXPECT_EQ(load_model("small").num_layers, 24);
  EXPECT_EQ(load_cluster("box").gpus_per_node, 8);
  EXPECT_THROW(load_model("smal"), InputError);
}

}  // namespace
}  // namespace trainsim::config
