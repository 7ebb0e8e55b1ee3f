// SPDX-License-Identifier: Apache-2.0
#include "sim/model/model_spec.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/units.hpp"
#include "sim/config/experiment.hpp"

namespace trainsim::model {
namespace {

/// A number as a source prints it: 174.6B is 174.6e9, known to 0.1e9.
struct Printed {
  double value = 0;
  double last_digit = 0;
};

Printed read_printed(const std::string& text) {
  std::size_t end = 0;
  const double number = std::stod(text, &end);
  if (end + 1 != text.size()) throw std::invalid_argument(text + ": expected digits and one of M, B, T");
  const double unit = text[end] == 'T' ? kTera : text[end] == 'B' ? kGiga : text[end] == 'M' ? kMega : 0.0;
  if (unit == 0.0) throw std::invalid_argument(text + ": unknown unit");
  const std::size_t point = text.find('.');
  const auto decimals = static_cast<double>(point == std::string::npos ? 0 : end - point - 1);
  return {number * unit, std::pow(10.0, -decimals) * unit};
}

/// Within 0.1 %, or the same when rounded to the digits that the source prints.
bool agrees(double computed, const Printed& printed) {
  if (std::abs(computed - printed.value) <= 1e-3 * printed.value) return true;
  return std::llround(computed / printed.last_digit) == std::llround(printed.value / printed.last_digit);
}

/// The text behind published_parameters in a preset; the parsed value has lost how many digits there were.
std::string published_text(const std::string& preset) {
  const std::filesystem::path root(TRAINSIM_SOURCE_DIR);
  std::ifstream file(root / "models" / (preset + ".yaml"));
  const std::string key = "published_parameters:";
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(' ', key.size());
    return line.substr(begin, line.find_first_of(" #", begin) - begin);
  }
  return "";
}

/// A GPT: as many key/value heads as heads, MLP of 4 h, learned positions, tied embedding, biases.
ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  ModelSpec model;
  model.num_layers = layers;
  model.hidden_size = hidden;
  model.num_attention_heads = model.num_key_value_heads = heads;
  model.head_dim = hidden / heads;
  model.intermediate_size = 4 * hidden;
  model.vocab_size = vocab;
  model.sequence_length = model.max_position_embeddings = 2048;
  return model;
}

/// Table 1 of Narayanan et al., SC'21 (arXiv 2104.04473), and table 3 of Korthikanti et al. 2022 (arXiv
/// 2205.05198): vocabulary 51,200, sequence 2,048.
std::vector<ModelSpec> published_gpts() {
  return {gpt(24, 2304, 24, 51200),    gpt(30, 3072, 32, 51200),   gpt(36, 4096, 32, 51200),
          gpt(40, 6144, 48, 51200),    gpt(48, 8192, 64, 51200),   gpt(60, 10240, 80, 51200),
          gpt(80, 12288, 96, 51200),   gpt(96, 16384, 128, 51200), gpt(105, 20480, 128, 51200),
          gpt(128, 25600, 160, 51200), gpt(48, 6144, 64, 51200),   gpt(96, 12288, 96, 51200)};
}

TEST(PrintedParameters, AreReadWithTheirPrecision) {
  EXPECT_DOUBLE_EQ(read_printed("174.6B").value, 174.6e9);
  EXPECT_DOUBLE_EQ(read_printed("174.6B").last_digit, 0.1e9);
  EXPECT_DOUBLE_EQ(read_printed("22B").last_digit, 1e9);
  EXPECT_DOUBLE_EQ(read_printed("8.030B").last_digit, 1e6);
  EXPECT_DOUBLE_EQ(read_printed("1.008T").value, 1008e9);
  EXPECT_THROW(read_printed("22"), std::invalid_argument);
  EXPECT_THROW(read_printed("22 billion"), std::invalid_argument);
}

TEST(PrintedParameters, AgreeWithinTheirDigitsOnly) {
  EXPECT_TRUE(agrees(1.651e9, read_printed("1.7B")));
  EXPECT_FALSE(agrees(1.649e9, read_printed("1.7B")));
  EXPECT_FALSE(agrees(1.751e9, read_printed("1.7B")));
  EXPECT_FALSE(agrees(22.6e9, read_printed("22B")));
  EXPECT_TRUE(agrees(174.75e9, read_printed("174.6B")));   // 0.09 %
  EXPECT_FALSE(agrees(174.80e9, read_printed("174.6B")));  // 0.11 %
  EXPECT_FALSE(agrees(8.039e9, read_printed("8.030B")));   // 0.11 %
}

TEST(ModelParameters, OfEveryPresetAreThePublishedOnes) {
  const std::vector<config::Preset> presets = config::list_presets("models");
  ASSERT_GE(presets.size(), 21U);
  for (const config::Preset& preset : presets) {
    const ModelSpec model = config::load_model(preset.name);
    const std::string text = published_text(preset.name);
    ASSERT_FALSE(text.empty()) << preset.name << " prints no parameter count";
    EXPECT_DOUBLE_EQ(model.published_parameters, read_printed(text).value) << preset.name;
    EXPECT_TRUE(agrees(total_parameters(model), read_printed(text)))
        << preset.name << ": " << total_parameters(model) << ", published " << text;
  }
}

/// What tokens pass through, as the models' authors print it: 12.9B of Mixtral 8x7B (announcement), 39B of
/// 8x22B, 3.3B and 22B of Qwen3 (arXiv 2505.09388, table 2), 37B and 21B of DeepSeek-V3 and -V2 (arXiv
/// 2412.19437, 2405.04434). They count embeddings in different ways, so within 3 %.
TEST(ModelParameters, ActiveOnesOfPresetsAreThePublishedOnes) {
  const std::vector<std::pair<const char*, double>> published = {
      {"mixtral-8x7b", 12.9e9},  {"mixtral-8x22b", 39e9}, {"qwen3-30b-a3b", 3.3e9},
      {"qwen3-235b-a22b", 22e9}, {"deepseek-v3", 37e9},   {"deepseek-v2", 21e9}};
  for (const auto& [name, active] : published)
    EXPECT_NEAR(active_parameters(config::load_model(name)), active, 0.03 * active) << name;
  const ModelSpec dense = config::load_model("llama3-8b");
  EXPECT_EQ(active_parameters(dense), total_parameters(dense));
}

/// The sizes of the tensors of the published checkpoint (Hugging Face, mistralai/Mixtral-8x7B-v0.1).
TEST(ModelParameters, OfMixtralToTheLastOne) {
  EXPECT_EQ(total_parameters(config::load_model("mixtral-8x7b")), 46'702'792'704.0);
}

TEST(ModelParameters, OfALayerWithExpertsByHand) {
  ModelSpec model = gpt(6, 16, 4, 100);
  model.linear_bias = false;
  model.experts.count = 8;
  model.experts.per_token = 2;
  model.experts.intermediate_size = 32;
  // Attention 4 * 256, norms 4 * 16, a router of 8 * 16, eight experts of 2 * 16 * 32.
  EXPECT_EQ(layer_parameters(model, LayerKind::kExpert), 1024 + 64 + 128 + 8 * 1024);
  // A dense layer has an MLP of 2 * 16 * 64 instead.
  EXPECT_EQ(layer_parameters(model), 1024 + 64 + 2048);
  model.experts.shared_intermediate_size = 48;
  EXPECT_EQ(layer_parameters(model, LayerKind::kExpert), 1024 + 64 + 128 + 8 * 1024 + 2 * 16 * 48);
  EXPECT_EQ(total_parameters(model) - active_parameters(model), 6 * 6 * 1024);
}

TEST(ModelLayers, WithExpertsComeAfterDenseOnesAtAnInterval) {
  ModelSpec model = gpt(6, 16, 4, 100);
  const auto kinds = [&model] {
    std::string text;
    for (std::int64_t layer = 0; layer < model.num_layers; ++layer)
      text += model.kind_of(layer) == LayerKind::kExpert ? 'E' : 'd';
    return text;
  };
  EXPECT_EQ(kinds(), "dddddd");
  model.experts.count = 8;
  EXPECT_EQ(kinds(), "EEEEEE");
  model.experts.dense_layers = 1;
  EXPECT_EQ(kinds(), "dEEEEE");
  model.experts.layer_interval = 2;
  EXPECT_EQ(kinds(), "ddEdEd");
  EXPECT_EQ(model.layers_of(LayerKind::kExpert), 2);
}

/// q: 16 -> 8 -> 2 heads of 4 + 2; k, v: 16 -> 5 + 2, 5 -> 2 heads of 4 and 3; output 2 * 3 -> 16; two norms.
TEST(ModelParameters, OfLatentAttentionByHand) {
  ModelSpec model = gpt(1, 16, 2, 100);
  model.linear_bias = false;
  model.head_dim = 6;
  model.value_head_dim = 3;
  model.latent = {8, 5, 2};
  const double attention = 16 * 8 + 8 * 12 + 16 * 7 + 5 * (8 + 6) + 6 * 16 + 8 + 5;
  EXPECT_EQ(layer_parameters(model), attention + 2 * 16 * 64 + 64);
  // Of attention only the output projection has a bias; the MLP has both of its own.
  model.linear_bias = true;
  EXPECT_EQ(layer_parameters(model), attention + 16 + 2 * 16 * 64 + 64 + 16 + 64);
  model.linear_bias = false;
  model.latent.query_rank = 0;  // queries at once
  EXPECT_EQ(layer_parameters(model), attention - 16 * 8 - 8 * 12 - 8 + 16 * 12 + 2 * 16 * 64 + 64);
  // Scores over 6, values over 3: 2 s^2 (12 + 6); weights without norms, and the head's.
  model.sequence_length = 32;
  const double weights = 16 * 12 + 16 * 7 + 5 * (8 + 6) + 6 * 16 + 2 * 16 * 64 + 16 * 100;
  EXPECT_EQ(model_flops(model, 1), 3 * (2 * 32 * weights + 2 * 32 * 32 * 18));
}

/// 12 L h^2 (1 + 13/12h + (V+s)/12Lh) of Narayanan et al., SC'21, which leaves out the final norm: 2 h.
TEST(ModelParameters, OfGptsFollowTheFormulaOfSc21) {
  for (const ModelSpec& model : published_gpts()) {
    const auto l = static_cast<double>(model.num_layers);
    const auto h = static_cast<double>(model.hidden_size);
    const double tables = 51200.0 + 2048.0;
    const double formula = 12 * l * h * h * (1 + 13 / (12 * h) + tables / (12 * l * h));
    EXPECT_NEAR(total_parameters(model), formula + 2 * h, 1e-12 * formula) << "h = " << h;
  }
}

/// Attention 4 h^2 + 4 h, MLP 8 h^2 + 5 h, two norms of 2 h each: 12 h^2 + 13 h.
TEST(ModelParameters, OfAGptLayerByHand) {
  // h = 16: 12 * 256 + 13 * 16 = 3072 + 208.
  EXPECT_EQ(layer_parameters(gpt(1, 16, 4, 100)), 3280);
}

/// V h for the words, s h for the positions; the head only has the final norm's 2 h, unless it is not tied.
TEST(ModelParameters, OfTheEndsByHand) {
  ModelSpec model = gpt(1, 16, 4, 100);
  model.sequence_length = 32;
  model.max_position_embeddings = 64;
  EXPECT_EQ(embedding_parameters(model, 100), 100 * 16 + 64 * 16);
  EXPECT_EQ(embedding_parameters(model, 128), 128 * 16 + 64 * 16);
  EXPECT_EQ(head_parameters(model, 128), 2 * 16);
  model.tie_word_embeddings = false;
  EXPECT_EQ(head_parameters(model, 128), 2 * 16 + 128 * 16);
  model.position_embedding = PositionEmbedding::kRotary;
  EXPECT_EQ(embedding_parameters(model, 100), 100 * 16);
  model.embedding_norm = true;
  EXPECT_EQ(embedding_parameters(model, 100), 100 * 16 + 2 * 16);
}

/// Layer: queries and output 2 * 4096^2 = 33,554,432; keys and values, 8 heads of 128: 2 * 4096 * 1024 =
/// 8,388,608; gate, up and down 3 * 4096 * 14,336 = 176,160,768; two RMS norms 8,192: 218,112,000.
/// Model: 32 layers 6,979,584,000; embedding and head 2 * 128,256 * 4096 = 1,050,673,152; norm 4,096.
TEST(ModelParameters, OfLlama3WithGroupedQueriesAndAGatedMlpByHand) {
  const ModelSpec model = config::load_model("llama3-8b");
  EXPECT_EQ(layer_parameters(model), 218'112'000);
  EXPECT_EQ(total_parameters(model), 8'030'261'248);
}

/// Layer: 4 * 4096^2 + 3 * 4096 * 11,008 + 2 * 4096 = 67,108,864 + 135,266,304 + 8,192 = 202,383,360.
/// Model: 32 layers 6,476,267,520; embedding and head 2 * 32,000 * 4096 = 262,144,000; norm 4,096.
TEST(ModelParameters, OfLlama2WithOneKeyValueHeadPerHeadByHand) {
  const ModelSpec model = config::load_model("llama2-7b");
  EXPECT_EQ(layer_parameters(model), 202'383'360);
  EXPECT_EQ(total_parameters(model), 6'738'415'616);
}

/// BLOOM's model card prints 176,247,271,424. Layer 12 h^2 + 13 h = 2,466,250,752 + 186,368 with h = 14,336;
/// 70 of them 172,650,598,400; words 250,880 * 14,336 = 3,596,615,680; norms after embedding and layers 4 h.
TEST(ModelParameters, OfBloomAreTheModelCardsToTheLastDigit) {
  EXPECT_EQ(total_parameters(config::load_model("bloom-176b")), 176'247'271'424);
}

/// 72 B L s h^2 (1 + s/6h + V/12hL) of Korthikanti et al. 2022, appendix A.
TEST(ModelFlops, OfGptsFollowTheFormulaOfKorthikanti) {
  for (const ModelSpec& model : published_gpts()) {
    const auto l = static_cast<double>(model.num_layers);
    const auto h = static_cast<double>(model.hidden_size);
    const double batch = 64;
    const double s = 2048;
    const double formula = 72 * batch * l * s * h * h * (1 + s / (6 * h) + 51200 / (12 * h * l));
    EXPECT_NEAR(model_flops(model, batch), formula, 1e-12 * formula) << "h = " << h;
  }
}

TEST(ModelFlops, DoNotDependOnHowAttentionIsComputed) {
  ModelSpec model = gpt(2, 64, 4, 128);
  const Flops standard = model_flops(model, 3);
  model.attention = Attention::kFlash;
  model.dropout = 0.1;
  EXPECT_EQ(model_flops(model, 3), standard);
  EXPECT_EQ(model_flops(model, 6), 2 * standard);
}

/// Per token and layer: 2 * 218,103,808 for the matrices (without norms), 4 s q = 4 * 8192 * 4096 =
/// 134,217,728 for full attention: 570,425,344; 32 of them 18,253,611,008; head 2 * 4096 * 128,256 =
/// 1,050,673,152; times three for forward and backward: 57,912,852,480. NVIDIA's tables count 57.9 GFLOP per
/// token too.
TEST(ModelFlops, OfLlama3PerTokenByHand) {
  const ModelSpec model = config::load_model("llama3-8b");
  EXPECT_DOUBLE_EQ(model_flops(model, 1) / 8192, 57'912'852'480.0);
}

TEST(PaddedVocabulary, IsAMultipleOfThePaddingTimesTheRanks) {
  EXPECT_EQ(padded_vocabulary(50257, 128, 1), 50304);    // 393 * 128
  EXPECT_EQ(padded_vocabulary(50257, 128, 8), 51200);    // 50 * 1024
  EXPECT_EQ(padded_vocabulary(151669, 128, 4), 152064);  // 297 * 512
}

TEST(PaddedVocabulary, LeavesAMultipleAsItIs) {
  EXPECT_EQ(padded_vocabulary(51200, 128, 8), 51200);
  EXPECT_EQ(padded_vocabulary(1024, 128, 8), 1024);
  EXPECT_EQ(padded_vocabulary(1025, 128, 8), 2048);
  EXPECT_EQ(padded_vocabulary(7, 1, 1), 7);
}

/// 10 billion tokens in 40.3 h on 32 GPUs are 1e10 / (40.3 * 3600 * 32) = 2154 tokens/s per GPU, reported as
/// 180 TFLOP/s with attention and logits (github.com/alibaba/Megatron-LLaMA/issues/49). Per token and layer:
/// 2 (4 * 5120^2 + 3 * 5120 * 13,824) + 4 * 2048 * 5120 = 676,331,520; 40 of them, the head's 2 * 5120 *
/// 32,000, and that times three: 8.214e10. 2154 * 8.214e10 = 177e12. The source rounds: 5 %.
TEST(DenseCases, B23_Llama13bRateWithAttentionAndLogits) {
  ModelSpec model = gpt(40, 5120, 40, 32000);
  model.activation = Activation::kSwiglu;
  model.intermediate_size = 13824;
  const double tokens_per_second = 1e10 / (40.3 * 3600 * 32);
  EXPECT_DOUBLE_EQ(model_flops(model, 1) / 2048, 82'142'822'400.0);
  EXPECT_NEAR(tokens_per_second * model_flops(model, 1) / 2048 / kTera, 180, 0.05 * 180);
}

}  // namespace
}  // namespace trainsim::model
