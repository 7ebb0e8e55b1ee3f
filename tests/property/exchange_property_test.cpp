// SPDX-License-Identifier: Apache-2.0
// What Megatron-LM's options can say survives an export and an import.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "sim/config/experiment.hpp"
#include "sim/config/parser.hpp"
#include "sim/exchange/megatron.hpp"
#include "sim/exchange/pipeline_split.hpp"
#include "sim/exchange/shell.hpp"
#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {
namespace {

using config::Experiment;
using Fields = std::map<std::string, std::string>;

std::string flag(bool value) {
  return value ? "true" : "false";
}

Fields model_fields(const model::ModelSpec& model) {
  return {{"num_layers", std::to_string(model.num_layers)},
          {"hidden_size", std::to_string(model.hidden_size)},
          {"num_attention_heads", std::to_string(model.num_attention_heads)},
          {"num_key_value_heads", std::to_string(model.num_key_value_heads)},
          {"head_dim", std::to_string(model.head_dim)},
          {"intermediate_size", std::to_string(model.intermediate_size)},
          {"vocab_size", std::to_string(model.vocab_size)},
          {"sequence_length", std::to_string(model.sequence_length)},
          {"max_position_embeddings", std::to_string(model.max_position_embeddings)},
          {"model.activation", std::to_string(static_cast<int>(model.activation))},
          {"software.attention", to_string(model.attention)},
          {"model.position_embedding", std::to_string(static_cast<int>(model.position_embedding))},
          {"normalization", std::to_string(static_cast<int>(model.normalization))},
          {"tie_word_embeddings", flag(model.tie_word_embeddings)},
          {"linear_bias", flag(model.linear_bias)},
          {"model.embedding_norm", flag(model.embedding_norm)},
          {"dropout", number_text(model.dropout)}};
}

std::string recompute_text(const plan::Recompute& recompute) {
  std::string text = to_string(recompute.granularity);
  if (recompute.granularity == plan::RecomputeGranularity::kFull)
    text += " " + to_string(recompute.method) + " " + std::to_string(recompute.layers);
  if (recompute.granularity == plan::RecomputeGranularity::kSelective) {
    for (const std::string& module : module_names(recompute.modules)) text += " " + module;
  }
  return text;
}

/// Everything that a plan says, under the keys that an export calls untold.
Fields fields_of(const Experiment& experiment) {
  const plan::ParallelPlan& plan = experiment.plan;
  Fields fields = model_fields(experiment.model);
  fields.merge(Fields{
      {"gpus", std::to_string(plan.gpus)},
      {"tensor_parallel", std::to_string(plan.tensor_parallel)},
      {"pipeline_parallel", std::to_string(plan.pipeline_parallel)},
      {"virtual_pipeline", std::to_string(plan.virtual_pipeline)},
      {"data_parallel", std::to_string(plan.data_parallel)},
      {"context_parallel", std::to_string(plan.context_parallel)},
      {"context_communication", plan.context_parallel > 1 ? to_string(plan.context_communication) : ""},
      {"sequence_parallel", flag(plan.sequence_parallel && plan.tensor_parallel > 1)},
      {"micro_batch_size", std::to_string(plan.micro_batch_size)},
      {"global_batch_size", std::to_string(plan.global_batch_size)},
      {"plan.schedule", to_string(plan.schedule)},
      {"recompute", recompute_text(plan.recompute)},
      {"plan.recompute.partial_micro_batches", std::to_string(plan.recompute.partial_micro_batches)},
      {"plan.activation_offload", std::to_string(plan.offloaded_layers)},
      {"plan.lora", std::to_string(plan.lora.rank)},
      {"sharding", to_string(plan.sharding)},
      {"keeps_gathered", flag(plan.keeps_gathered)},
      {"plan.sharding.group", std::to_string(plan.shard_ranks())},
      {"plan.precision", to_string(plan.precision)},
      {"plan.gradient_dtype", std::to_string(plan.gradient_bytes)},
      {"layers", list_text(stage_layers(plan, experiment.model))},
      {"vocab_padding", std::to_string(plan.vocab_padding)},
      {"overlap_gradient_reduction", flag(plan.overlap_gradient_reduction)},
      {"overlap_parameter_gather", flag(plan.overlap_parameter_gather)},
      {"plan.overlap_point_to_point", flag(plan.overlap_point_to_point)},
      {"overlap_tensor_communication", flag(plan.overlap_tensor_communication)},
      {"scatter_gather_transfers", flag(plan.scatter_gather_transfers)},
      {"bucket_parameters", std::to_string(plan.bucket_parameters)},
      {"software.launch", to_string(plan.launch)},
      {"software.fusion", to_string(plan.fusion)},
      {"software.framework", to_string(plan.framework)},
      {"loss", to_string(plan.loss)},
      {"software.loss_metrics", std::to_string(plan.loss_metrics)},
      {"plan.optimizer", to_string(plan.optimizer)},
      {"software.transformer_engine", flag(plan.transformer_engine)},
      {"gradient_accumulation_fusion", flag(plan.gradient_accumulation_fusion)},
      {"persistent_norm", flag(plan.persistent_norm)},
      {"software.checkpoint_early_stop",
       flag(plan.checkpoint_early_stop && plan.recompute.granularity == plan::RecomputeGranularity::kFull)},
      {"software.fused_linears", flag(plan.fused_linears == plan::FusedLinears{})},
      {"plan.order", to_string(plan.order)},
      {"plan.placement", list_text(plan.nodes)},
      {"plan.profile", flag(!plan.profile.empty())},
      {"memory.expandable_segments", flag(plan.expandable_segments)}});
  return fields;
}

config::Value parsed(const std::string& text, const std::filesystem::path& folder) {
  config::Report report;
  auto root = config::parse_mapping(std::make_shared<config::Source>("test", folder, text, 0), report);
  report.throw_if_any();
  return std::move(*root);
}

/// The cluster of a configuration file, as it is written there.
config::Value cluster_of(const std::filesystem::path& file) {
  config::Report report;
  auto root = config::parse_mapping(config::read_source(file, 0, report), report);
  report.throw_if_any();
  return root->find("cluster")->value;
}

/// Exports, imports, and compares all that could be told.
void expect_round_trip(const Experiment& experiment, const config::Value& cluster) {
  const MegatronCommand command = to_megatron(experiment.model, experiment.plan);
  ShellScript script;
  follow_script(script,
                megatron_script(command, experiment.plan, experiment.cluster.gpus_per_node, experiment.name),
                "test.sh", {});
  const Translation translation = translate_megatron(script, std::nullopt);
  for (const Remark& remark : translation.remarks())
    EXPECT_NE(remark.reason, Reason::kUnknown) << remark.option;
  config::Value root = parsed(to_yaml(translation, {"test.sh"}), "");
  root.set("cluster", cluster.at, cluster);
  Fields before = fields_of(experiment);
  Fields after = fields_of(config::resolve(root, {}, "imported"));
  for (const std::string& untold : command.untold) {
    const std::string key = untold.substr(0, untold.find(':'));
    before.erase(key);
    after.erase(key);
  }
  EXPECT_EQ(before, after);
}

TEST(MegatronRoundTrip, KeepsEveryConfigurationThatShips) {
  const std::filesystem::path folder = std::filesystem::path(TRAINSIM_SOURCE_DIR) / "configs";
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    expect_round_trip(config::load(entry.path().string(), {}), cluster_of(entry.path()));
    ++seen;
  }
  EXPECT_GT(seen, 20);
}

/// Overrides of a configuration, most of which make a legal one.
std::vector<std::string> random_overrides() {
  const auto word = [](const std::string& key, const std::vector<std::string>& words) {
    return key + "=" + *rc::gen::elementOf(words);
  };
  const std::vector<std::string> flags = {"true", "false"};
  const bool pipeline = *rc::gen::arbitrary<bool>();
  std::vector<std::string> overrides = {
      word("plan.tensor_parallel", {"1", "2", "4"}),
      word("plan.pipeline_parallel", {pipeline ? "2" : "1"}),
      word("plan.context_parallel", {"1", "1", "2"}),
      word("plan.context_communication", {"p2p", "all_gather", "a2a"}),
      word("plan.sequence_parallel", flags),
      word("plan.micro_batch_size", {"1", "2"}),
      word("plan.recompute", {"none", "selective", "full", "{granularity: full, method: block, layers: 2}",
                              "{granularity: selective, modules: [mlp, layernorm]}"}),
      word("plan.precision", {"fp16", "bf16", "fp32"}),
      word("plan.gradient_dtype", {"fp32", "bf16"}),
      word("plan.optimizer", {"adam", "lion", "sgd", "sgd-momentum"}),
      word("plan.vocab_padding", {"1", "128"}),
      word("plan.overlap_gradient_reduction", flags),
      word("plan.overlap_tensor_communication", flags),
      word("plan.scatter_gather_transfers", flags),
      word("plan.bucket_parameters", {"1M", "40M"}),
      word("plan.order", {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp"}),
      word("plan.sequence_length", {"512", "2048"}),
      word("software.launch", {"eager", "cuda-graph", "compiled"}),
      word("software.fusion", {"none", "standard"}),
      word("software.loss", {"standard", "fused"}),
      word("software.gradient_accumulation_fusion", flags),
      word("software.persistent_norm", flags),
      word("software.attention", {"flash", "flash-2", "flash-1", "standard"}),
      word("model.activation", {"gelu", "swiglu", "geglu"}),
      word("model.dropout", {"0", "0.1"}),
      word("model.tie_word_embeddings", flags),
      word("model.position_embedding", {"learned", "rotary", "none"})};
  if (pipeline) {
    overrides.push_back(word("plan.sharding", {"none", "zero1"}));
    const bool chunks = *rc::gen::arbitrary<bool>();
    overrides.push_back(chunks ? "plan.virtual_pipeline=2" : "plan.virtual_pipeline=1");
    overrides.push_back(chunks ? "plan.schedule=interleaved" : word("plan.schedule", {"1f1b", "gpipe"}));
    if (*rc::gen::arbitrary<bool>())
      overrides.emplace_back(chunks ? "plan.pipeline_layout=[1, 2, 3, 2]" : "plan.pipeline_layout=[3, 5]");
    if (*rc::gen::inRange(0, 4) == 0)
      overrides.emplace_back("plan.recompute={granularity: full, partial_micro_batches: 1}");
  } else {
    if (*rc::gen::inRange(0, 4) == 0) overrides.emplace_back("plan.activation_offload={layers: 2}");
    overrides.push_back(word(
        "plan.sharding", {"none", "zero1", "zero2", "zero3", "{stage: 3, reshard_after_forward: false}"}));
  }
  return overrides;
}

RC_GTEST_PROP(MegatronRoundTrip, KeepsRandomPlans, ()) {
  const std::filesystem::path file =
      std::filesystem::path(TRAINSIM_SOURCE_DIR) / "configs" / "small-tp2-pp2-dp2.yaml";
  const std::vector<std::string> overrides = random_overrides();
  Experiment experiment;
  try {
    experiment = config::load(file.string(), overrides);
  } catch (const InputError&) {
    RC_DISCARD("not a legal plan");
  }
  expect_round_trip(experiment, cluster_of(file));
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace trainsim::exchange
