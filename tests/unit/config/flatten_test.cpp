// SPDX-License-Identifier: Apache-2.0
#include "sim/config/flatten.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

TEST(Flatten, WritesDottedPathsAndFlowStyle) {
  const Values expected = {{"gpus", "8"},
                           {"plan.layout", "[1, 2]"},
                           {"plan.recompute.layers", "3"},
                           {"cluster.slow_gpus", "[{gpu: 3, slowdown: 1.5}]"}};
  EXPECT_EQ(flatten(parsed("name: text\ngpus: 8\nplan: {layout: [1, 2], recompute: {layers: 3}}\n"
                           "cluster: {source: text, slow_gpus: [{gpu: 3, slowdown: 1.5}]}\n")),
            expected);
}

class Resolved : public InputFolder {
 protected:
  /// A value of a configuration, or "none".
  static std::string value(const Experiment& experiment, const std::string& key) {
    const auto found = std::find_if(experiment.values.begin(), experiment.values.end(),
                                    [&key](const auto& each) { return each.first == key; });
    return found == experiment.values.end() ? "none" : found->second;
  }
};

TEST_F(Resolved, ValuesAreThoseOfPresetsFilesOverridesAndDefaults) {
  const Experiment experiment = loaded(configuration("{tensor_parallel: 2}"), {"cluster.gpu.memory=40 GiB"});
  EXPECT_EQ(value(experiment, "gpus"), "16");
  EXPECT_EQ(value(experiment, "model.hidden_size"), "1024");
  EXPECT_EQ(value(experiment, "cluster.gpu.memory"), "40 GiB");
  EXPECT_EQ(value(experiment, "cluster.nic.bandwidth"), "200 Gb/s");
  EXPECT_EQ(value(experiment, "plan.tensor_parallel"), "2");
  // 16 GPUs in pairs.
  EXPECT_EQ(value(experiment, "plan.data_parallel"), "8");
  EXPECT_EQ(value(experiment, "cluster.max_gpus"), "none");
}

}  // namespace
}  // namespace trainsim::config
