// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainsim::exchange {

/// Megatron-LM's options about which stage has which layers.
struct PipelineOptions {
  std::int64_t layers = 0;
  std::int64_t stages = 1;
  std::optional<std::int64_t> layers_per_chunk;
  std::optional<std::int64_t> chunks;
  std::optional<std::int64_t> first;
  std::optional<std::int64_t> last;
  /// Whether the embedding and the head count as layers when layers are dealt out.
  bool counts_embedding = false;
  bool counts_loss = false;
  /// --pipeline-model-parallel-layout; empty when not given.
  std::string layout;
};

/// The same in our terms.
struct PipelineSplit {
  /// Model chunks of a stage.
  std::int64_t chunks = 1;
  /// Layers of each chunk in pipeline order; empty when they are even.
  std::vector<std::int64_t> layout;
  std::string chunks_origin;
  std::string layout_origin;
};

/// Deals layers out as Megatron-LM does. Throws InputError when they cannot be.
PipelineSplit split_pipeline(const PipelineOptions& options);

/// "[1, 2, 3]".
std::string list_text(const std::vector<std::int64_t>& numbers);

}  // namespace trainsim::exchange
