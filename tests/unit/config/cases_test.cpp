// SPDX-License-Identifier: Apache-2.0
// Known cases of what people configured whose right answer is acceptance, a derived value or a warning. Those
// whose right answer is an error are in tests/bad_inputs, under the same numbers.
#include <algorithm>

#include <gtest/gtest.h>

#include "sim/config/quantity.hpp"
#include "sim/model/model_spec.hpp"
#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

class Cases : public InputFolder {
 protected:
  /// A configuration of the small model, changed, on `gpus` GPUs.
  std::string changed(const std::string& model, int gpus, const std::string& plan) const {
    return write("run.yaml", "model: {extends: small, " + model +
                                 "}\ncluster: box\ngpus: " + std::to_string(gpus) + "\nplan: " + plan + "\n");
  }

  static std::string default_of(const Experiment& experiment, const std::string& field) {
    for (const auto& [each, value] : experiment.defaults) {
      if (each == field) return value;
    }
    return "(given)";
  }
};

TEST_F(Cases, D05_FewerKeyValueHeadsThanRanksAreReplicatedWithAWarning) {
  // 2 key/value heads: split over 2 ranks, each on 2 of 4 ranks, each on 4 of 8 ranks.
  const std::string heads = "num_key_value_heads: 2";
  EXPECT_TRUE(loaded(changed(heads, 8, "{tensor_parallel: 2}")).warnings.empty());
  EXPECT_EQ(
      loaded(changed(heads, 8, "{tensor_parallel: 4}")).warnings,
      std::vector<std::string>{"plan.tensor_parallel: 4 is more than the 2 key/value heads, so that each is "
                               "replicated on 2 ranks"});
  EXPECT_EQ(
      loaded(changed(heads, 8, "{tensor_parallel: 8}")).warnings,
      std::vector<std::string>{"plan.tensor_parallel: 8 is more than the 2 key/value heads, so that each is "
                               "replicated on 4 ranks"});
}

TEST_F(Cases, ExpertsAreAsWideAsAnMlpUnlessTheySayOtherwise) {
  const Experiment run =
      loaded(changed("intermediate_size: 96, experts: {count: 8, per_token: 2}", 8, "{expert_parallel: 4}"));
  EXPECT_EQ(run.model.experts.count, 8);
  EXPECT_EQ(run.model.experts.per_token, 2);
  EXPECT_EQ(run.model.experts.intermediate_size, 96);
  EXPECT_EQ(run.model.experts.shared_intermediate_size, 0);
  EXPECT_EQ(run.model.experts.dense_layers, 0);
  EXPECT_EQ(run.model.experts.layer_interval, 1);
  EXPECT_EQ(run.model.experts.capacity_factor, 0);
  EXPECT_EQ(run.model.experts.imbalance, 1);
  EXPECT_EQ(run.plan.expert_parallel, 4);
  EXPECT_EQ(run.plan.expert_tensor(), 1);
  EXPECT_EQ(run.plan.expert_data_parallel(), 2);
  // Without dense layers a gated model needs no width but that of the experts.
  EXPECT_EQ(
      loaded(changed("activation: swiglu, experts: {count: 8, per_token: 2, intermediate_size: 64}", 8, "{}"))
          .model.experts.intermediate_size,
      64);
}

TEST_F(Cases, LatentAttentionGivesTheWidthsOfHeads) {
  const Experiment run = loaded(changed(
      "latent_attention: {kv_lora_rank: 16, qk_nope_head_dim: 12, qk_rope_head_dim: 4, v_head_dim: 10}", 8,
      "{}"));
  EXPECT_EQ(run.model.latent.query_rank, 0);
  EXPECT_EQ(run.model.latent.key_value_rank, 16);
  EXPECT_EQ(run.model.head_dim, 16);
  EXPECT_EQ(run.model.value_dim(), 10);
  EXPECT_EQ(run.model.num_key_value_heads, run.model.num_attention_heads);
}

TEST_F(Cases, D10_TheDerivedGlobalBatchIsShown) {
  // It grows with the number of GPUs: 2 * 8 = 16, 2 * 16 = 32.
  EXPECT_EQ(default_of(loaded(configuration("{micro_batch_size: 2}", "gpus: 8\n")), "plan.global_batch_size"),
            "16");
  EXPECT_EQ(default_of(loaded(configuration("{micro_batch_size: 2}")), "plan.global_batch_size"), "32");
}

TEST_F(Cases, D08_OneMissingFactorOfTheBatchIsDerived) {
  const Experiment run = loaded(configuration("{micro_batch_size: 2, gradient_accumulation: 3}"));
  EXPECT_EQ(run.plan.global_batch_size, 96);  // 2 * 3 * 16
  EXPECT_EQ(loaded(configuration("{micro_batch_size: 2, gradient_accumulation: 3, global_batch_size: 96}"))
                .plan.micro_batches(),
            3);
}

TEST_F(Cases, D20_ASequenceThatDividesEvenlyIsAccepted) {
  // 50016 = 8 * 6252.
  EXPECT_EQ(error_of(changed("sequence_length: 50016", 8, "{tensor_parallel: 8, sequence_parallel: true}")),
            "");
}

TEST_F(Cases, D22_IsPaddedToAMultipleOf128TimesTheRanks) {
  EXPECT_EQ(model::padded_vocabulary(50257, 128, 1), 50304);    // 393 * 128
  EXPECT_EQ(model::padded_vocabulary(50257, 128, 8), 51200);    // 50 * 1024
  EXPECT_EQ(model::padded_vocabulary(151669, 128, 4), 152064);  // 297 * 512
  EXPECT_EQ(model::padded_vocabulary(151552, 128, 1), 151552);
}

TEST_F(Cases, D24_TheDerivedDataParallelDegreeIsShown) {
  EXPECT_EQ(default_of(loaded(configuration("{pipeline_parallel: 2}", "gpus: 8\n")), "plan.data_parallel"),
            "4");
}

TEST_F(Cases, D26_ABatchWithoutPipelineIsAccumulatedNotRewritten) {
  // 512 = 4 * 64 * 2.
  const Experiment run = loaded(configuration("{micro_batch_size: 4, global_batch_size: 512}", "gpus: 64\n"));
  EXPECT_EQ(run.plan.micro_batch_size, 4);
  EXPECT_EQ(run.plan.micro_batches(), 2);
  EXPECT_EQ(default_of(run, "plan.gradient_accumulation"), "2");
}

TEST_F(Cases, D27_AWidthThatDividesEvenlyIsAccepted) {
  // 14336 = 16 * 896; 16 ranks are two nodes, which is worth a warning only.
  const Experiment run =
      loaded(changed("num_attention_heads: 32, intermediate_size: 14336", 16, "{tensor_parallel: 16}"));
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(
      run.warnings[0].starts_with("plan.tensor_parallel: 16 ranks do not fit evenly into nodes of 8 GPUs"));
}

TEST_F(Cases, H07_GroupedDigitsAreANumber) {
  EXPECT_EQ(loaded(configuration("{}", "gpus: 1_024\n")).plan.gpus, 1024);
}

TEST_F(Cases, H09_MemoryIsReadAsItIsWritten) {
  // 81559 MiB = 79.65 GiB; 80e9 bytes are 74.5 GiB.
  const double gibibyte = 1024.0 * 1024.0 * 1024.0;
  EXPECT_NEAR(*parse_quantity("81559 MiB", Dimension::kSize).value / gibibyte, 79.65, 0.02);
  EXPECT_NEAR(*parse_quantity("80 GB", Dimension::kSize).value / gibibyte, 74.5, 0.05);
}

TEST_F(Cases, H10_400GbpsAre50GBps) {
  EXPECT_EQ(*parse_quantity("400Gbps", Dimension::kRate).value,
            *parse_quantity("50GBps", Dimension::kRate).value);
}

TEST_F(Cases, H10_ANetworkFasterThanTheNodeIsSuspicious) {
  const Experiment run = loaded(configuration("{}"), {"cluster.nic_bandwidth=400 GB/s"});
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_EQ(
      run.warnings[0],
      "cluster.nic.bandwidth: a NIC (400 GB/s) is faster than the connection inside a node (300 GB/s); check "
      "bits and bytes (8 Gb/s = 1 GB/s), and that each counts one direction of one GPU");
}

TEST_F(Cases, H18_DecimalSuffixesAreUnderstood) {
  EXPECT_EQ(*parse_count("7B").value, 7'000'000'000);
  EXPECT_EQ(*parse_count("1.4T").value, 1'400'000'000'000);
  EXPECT_EQ(*parse_count("2048k").value, 2'048'000);
}

}  // namespace
}  // namespace trainsim::config
