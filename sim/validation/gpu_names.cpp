// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/gpu_names.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/base/text.hpp"

namespace trainsim::validation {

namespace {

/// A GPU whose name holds all of these words.
struct Known {
  std::vector<std::string_view> words;
  std::string_view gpu;
  std::string_view cluster;
};

/// The first that fits counts.
const std::vector<Known>& known_gpus() {
  static const std::vector<Known> known = {{{"a100", "pcie", "80"}, "a100-80gb-pcie", "pcie-a100-8"},
                                           {{"a100", "80gb"}, "a100-80gb", "dgx-a100-80gb"},
                                           {{"a100", "40gb"}, "a100-40gb", "dgx-a100-40gb"},
                                           {{"h100", "sxm"}, "h100-sxm", "dgx-h100"},
                                           {{"h200", "sxm"}, "h200-sxm", "dgx-h200"},
                                           {{"gb300"}, "gb300", "gb300-nvl72"},
                                           {{"b300"}, "b300", "dgx-b300"},
                                           {{"gb200"}, "gb200", "gb200-nvl72"},
                                           {{"b200"}, "b200", "dgx-b200"},
                                           {{"v100", "32gb"}, "v100-32gb", "dgx-2"}};
  return known;
}

}  // namespace

std::optional<GpuPresets> presets_for_gpu(const std::string& name) {
  const std::string small = lower(name);
  for (const Known& known : known_gpus()) {
    const bool all = std::all_of(known.words.begin(), known.words.end(), [&small](std::string_view word) {
      return small.find(word) != std::string::npos;
    });
    if (!all) continue;
    return GpuPresets{std::string(known.gpu), std::string(known.cluster)};
  }
  return std::nullopt;
}

}  // namespace trainsim::validation
