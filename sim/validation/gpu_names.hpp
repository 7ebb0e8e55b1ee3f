// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

namespace trainsim::validation {

/// Presets for a GPU.
struct GpuPresets {
  std::string gpu;
  /// A cluster of such GPUs.
  std::string cluster;
};

/// The presets for a GPU as a source or a table names it ("A100-SXM4-80GB", "a100-80gb"); nothing for a GPU
/// without preset.
std::optional<GpuPresets> presets_for_gpu(const std::string& name);

}  // namespace trainsim::validation
