// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "sim/config/experiment.hpp"
#include "sim/config/parser.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trainsim::config {

/// Text as a source called `name`.
inline std::shared_ptr<const Source> source_of(const std::string& text, const std::string& name = "test.yaml",
                                               int order = 0) {
  return std::make_shared<Source>(name, "", text, order);
}

/// Parses text that must be right.
inline Value parsed(const std::string& text) {
  Report report;
  std::optional<Value> value = parse(source_of(text), text, report);
  EXPECT_TRUE(report.empty()) << report.text();
  return value.value_or(Value{});
}

/// First line of what is wrong with a text; empty when nothing is.
inline std::string parse_error(const std::string& text) {
  Report report;
  parse(source_of(text), text, report);
  const std::string all = report.text();
  return all.substr(0, all.find('\n'));
}

/// A folder with a model, a GPU and a cluster as presets, removed at the end of the test.
class InputFolder : public testing::Test {
 protected:
  void SetUp() override {
    write("models/small.yaml",
          "num_layers: 24\nhidden_size: 1024\nnum_attention_heads: 16\nvocab_size: 50257\n"
          "sequence_length: 1024\n");
    write("topologies/gpus/chip.yaml",
          "memory: 80 GiB\nmemory_bandwidth: 2000 GB/s\nmemory_efficiency: 0.8\npeak_fp32: 20 TFLOP/s\n"
          "peak_fp16: 300 TFLOP/s\npeak_bf16: 300 TFLOP/s\nmatmul_efficiency: 0.8\nmatmul_half_k: "
          "64\ntile_m: 128\n"
          "tile_n: 256\nmultiprocessors: 108\nattention_efficiency_forward: 0.6\n"
          "attention_efficiency_backward: 0.5\nkernel_overhead: 3 us\nlaunch_interval_eager: 8 us\n"
          "launch_interval_compiled: 4 us\nlaunch_interval_graph: 1 us\n");
    write("topologies/nics/card.yaml", "bandwidth: 200 Gb/s\nefficiency: 0.9\nlatency: 2 us\n");
    write("topologies/clusters/box.yaml",
          "gpu: chip\ngpus_per_node: 8\nnics_per_node: 8\n"
          "intra_node: {kind: nvswitch, bandwidth: 300 GB/s, efficiency: 0.8, latency: 1 us}\n"
          "pcie: {bandwidth: 32 GB/s, efficiency: 0.8, latency: 1 us}\nnic: card\n"
          "fabric: {kind: fat-tree, nodes_per_leaf: 16, switch_latency: 300 ns}\ncollective_latency: 8 us\n"
          "point_to_point_latency: 5 us\n");
    setenv("TRAINSIM_HOME", folder_.path().c_str(), 1);
  }

  void TearDown() override { unsetenv("TRAINSIM_HOME"); }

  /// Writes a file below the folder and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text).string();
  }

  /// A configuration of the presets on 16 GPUs with these lines as its plan and more.
  std::string configuration(const std::string& plan, const std::string& more = "gpus: 16\n") const {
    return write("run.yaml", "model: small\ncluster: box\n" + more + "plan: " + plan + "\n");
  }

  /// Loads a configuration that must be right.
  static Experiment loaded(const std::string& path, const std::vector<std::string>& overrides = {}) {
    try {
      return load(path, overrides);
    } catch (const InputError& error) {
      ADD_FAILURE() << error.what();
      return {};
    }
  }

  /// What is wrong with a configuration, with its folder cut from the names of files; empty when nothing is.
  std::string error_of(const std::string& path, const std::vector<std::string>& overrides = {},
                       Scope scope = Scope::kRun) const {
    std::string text;
    try {
      load(path, overrides, scope);
    } catch (const InputError& error) {
      text = error.what();
    }
    const std::string prefix = folder_.path().string() + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

  tests::TemporaryFolder folder_;
};

}  // namespace trainsim::config
