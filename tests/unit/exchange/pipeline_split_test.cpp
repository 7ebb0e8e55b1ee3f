// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/pipeline_split.hpp"

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::exchange {
namespace {

using Layers = std::vector<std::int64_t>;

PipelineOptions options(std::int64_t layers, std::int64_t stages) {
  PipelineOptions given;
  given.layers = layers;
  given.stages = stages;
  return given;
}

TEST(PipelineSplit, EvenStagesNeedNoLayout) {
  const PipelineSplit split = split_pipeline(options(24, 4));
  EXPECT_EQ(split.chunks, 1);
  EXPECT_TRUE(split.layout.empty());
}

TEST(PipelineSplit, CountsChunksByTheirLayers) {
  PipelineOptions given = options(24, 4);
  given.layers_per_chunk = 2;
  EXPECT_EQ(split_pipeline(given).chunks, 3);
  given.layers_per_chunk = 4;
  EXPECT_THROW(split_pipeline(given), InputError);
}

TEST(PipelineSplit, EmbeddingAndLossTakeTheirPlaces) {
  PipelineOptions given = options(30, 4);
  given.counts_embedding = given.counts_loss = true;
  EXPECT_EQ(split_pipeline(given).layout, (Layers{7, 8, 8, 7}));
  given.chunks = 2;
  EXPECT_EQ(split_pipeline(given).layout, (Layers{3, 4, 4, 4, 4, 4, 4, 3}));
}

TEST(PipelineSplit, FirstAndLastStageMayDiffer) {
  PipelineOptions given = options(30, 4);
  given.first = 6;
  given.last = 4;
  EXPECT_EQ(split_pipeline(given).layout, (Layers{6, 10, 10, 4}));
  given.chunks = 2;
  EXPECT_EQ(split_pipeline(given).layout, (Layers{3, 5, 5, 2, 3, 5, 5, 2}));
  given.first = 7;
  EXPECT_THROW(split_pipeline(given), InputError);
}

TEST(PipelineSplit, ReadsLayouts) {
  PipelineOptions given = options(10, 2);
  // E t t | t t | t t | t t t t L
  given.layout = "Ett|(tt|)*2,t*4L";
  const PipelineSplit split = split_pipeline(given);
  EXPECT_EQ(split.layout, (Layers{2, 2, 2, 4}));
  EXPECT_EQ(split.chunks, 2);
  given.layout = "E|t*10|L";
  EXPECT_THROW(split_pipeline(given), InputError) << "three parts on two stages";
  for (const char* wrong : {"Ett|(tt", "*3", "Et**2", "t*99999999999", "Etm|L", "Et)|L"}) {
    given.layout = wrong;
    EXPECT_THROW(split_pipeline(given), InputError) << wrong;
  }
}

}  // namespace
}  // namespace trainsim::exchange
