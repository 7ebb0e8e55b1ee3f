// SPDX-License-Identifier: Apache-2.0
// Short names and relative values of --what-if as overrides, and what is said of those that can't be
// understood.
#include "sim/config/what_if.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

using Texts = std::vector<std::string>;

class WhatIf : public InputFolder {
 protected:
  void SetUp() override {
    InputFolder::SetUp();
    base_ = loaded(configuration("{tensor_parallel: 2, bucket_parameters: 40M}"));
  }

  Texts overrides(const Texts& changes) const { return overrides_for(changes, base_, "--what-if"); }

  std::string error(const std::string& change) const {
    try {
      overrides({change});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  Experiment base_;
};

TEST_F(WhatIf, RelativeValuesKeepTheUnit) {
  // The GPU has 2000 GB/s and 80 GiB, the NIC 200 Gb/s.
  EXPECT_EQ(overrides({"gpu.hbm_bandwidth=+20%"}), Texts{"cluster.gpu.memory_bandwidth=2400 GB/s"});
  EXPECT_EQ(overrides({"gpu.hbm_bandwidth=-25%"}), Texts{"cluster.gpu.memory_bandwidth=1500 GB/s"});
  EXPECT_EQ(overrides({"gpu.memory=x2"}), Texts{"cluster.gpu.memory=160 GiB"});
  EXPECT_EQ(overrides({"network.nic=x0.5"}), Texts{"cluster.nic.bandwidth=100 Gb/s"});
  EXPECT_EQ(overrides({"gpu.matmul_efficiency=x1.1"}), Texts{"cluster.gpu.matmul_efficiency=0.88"});
}

TEST_F(WhatIf, CountsStayWholeWhereTheyCan) {
  EXPECT_EQ(overrides({"gpus=x2"}), Texts{"gpus=32"});
  EXPECT_EQ(overrides({"plan.tensor_parallel=x4"}), Texts{"plan.tensor_parallel=8"});
  EXPECT_EQ(overrides({"plan.bucket_parameters=+50%"}), Texts{"plan.bucket_parameters=60000000"});
  // A third more than two ranks is refused when the configuration is read.
  EXPECT_EQ(overrides({"plan.tensor_parallel=+20%"}), Texts{"plan.tensor_parallel=2.4"});
  EXPECT_NE(error_of(folder_.path() / "run.yaml", overrides({"plan.tensor_parallel=+20%"}))
                .find("2.4 is not a whole number"),
            std::string::npos);
}

TEST_F(WhatIf, AbsoluteValuesAreTakenAsTheyAre) {
  EXPECT_EQ(overrides({"network.nic=800 Gb/s"}), Texts{"cluster.nic.bandwidth=800 Gb/s"});
  EXPECT_EQ(overrides({" plan.recompute = full "}), Texts{"plan.recompute=full"});
  EXPECT_EQ(overrides({"plan.pipeline_layout=[12, 12]"}), Texts{"plan.pipeline_layout=[12, 12]"});
  EXPECT_EQ(overrides({"gpus=32", "gpu.memory=40 GiB"}), (Texts{"gpus=32", "cluster.gpu.memory=40 GiB"}));
}

TEST_F(WhatIf, NamesFollowPrecisionAndLaunches) {
  EXPECT_EQ(overrides({"gpu.peak_flops=x2"}), Texts{"cluster.gpu.peak_bf16=600 TFLOP/s"});
  EXPECT_EQ(overrides({"host.launch_interval=x2"}), Texts{"cluster.gpu.launch_interval_eager=16 us"});
  // Twice the rate is half the time per launch, 8 us.
  EXPECT_EQ(overrides({"host.launch_rate=x2"}), Texts{"cluster.gpu.launch_interval_eager=4 us"});
  base_ = loaded(configuration("{precision: fp16}", "gpus: 16\nsoftware: {launch: cuda-graph}\n"));
  EXPECT_EQ(overrides({"gpu.peak_flops=x2"}), Texts{"cluster.gpu.peak_fp16=600 TFLOP/s"});
  EXPECT_EQ(overrides({"host.launch_rate=x4"}), Texts{"cluster.gpu.launch_interval_graph=0.25 us"});
}

TEST_F(WhatIf, LatencyIsThatOfEveryLinkAndCall) {
  EXPECT_EQ(overrides({"network.latency=x0.5"}),
            (Texts{"cluster.collective_latency=4 us", "cluster.point_to_point_latency=2.5 us",
                   "cluster.intra_node.latency=0.5 us", "cluster.pcie.latency=0.5 us",
                   "cluster.nic.latency=1 us", "cluster.fabric.switch_latency=150 ns"}));
}

TEST_F(WhatIf, ReductionsInTheSwitchFollowTheirPort) {
  EXPECT_EQ(overrides({"network.nvlink=450 GB/s"}), Texts{"cluster.intra_node.bandwidth=450 GB/s"});
  base_ = loaded(configuration("{}"), {"cluster.intra_node.nvls_bandwidth=200 GB/s"});
  const Texts both = {"cluster.intra_node.bandwidth=450 GB/s", "cluster.intra_node.nvls_bandwidth=300 GB/s"};
  // 450 of 300 GB/s.
  EXPECT_EQ(overrides({"network.nvlink=450 GB/s"}), both);
  EXPECT_EQ(overrides({"network.nvlink=+50%"}), both);
}

TEST_F(WhatIf, OperationsAreAsFastAsModelledUnlessSaidOtherwise) {
  EXPECT_EQ(overrides({"op.attention.speedup=2"}), Texts{"op.attention.speedup=2"});
  EXPECT_EQ(overrides({"op.attention.speedup=+10%"}), Texts{"op.attention.speedup=1.1"});
  base_ = loaded(configuration("{}"), {"op.attention.speedup=2"});
  EXPECT_EQ(overrides({"op.attention.speedup=x3"}), Texts{"op.attention.speedup=6"});
  EXPECT_EQ(base_.plan.op_speedups.of(OpClass::kAttention), 2);
  EXPECT_EQ(base_.plan.op_speedups.of(OpClass::kMatmul), 1);
}

TEST_F(WhatIf, MemorySpeedupIsOfAllMemoryBoundOperations) {
  const OpSpeedups speedups =
      loaded(configuration("{}"), {"op.memory.speedup=2", "op.norm.speedup=3"}).plan.op_speedups;
  EXPECT_EQ(speedups.of(OpClass::kNorm), 6);
  EXPECT_EQ(speedups.of(OpClass::kLoss), 2);
  EXPECT_EQ(speedups.of(OpClass::kMatmul), 1);
  EXPECT_EQ(speedups.of(OpClass::kAttention), 1);
  EXPECT_EQ(speedups.of(OpClass::kOptimizer), 1);
}

TEST_F(WhatIf, UnknownNamesAreErrorsWithWhatMayBeMeant) {
  EXPECT_EQ(error("gpu.hbm_bandwith=+20%"),
            "trainsim: error: --what-if gpu.hbm_bandwith=+20%: 'gpu.hbm_bandwith' is not known (did you mean "
            "'gpu.hbm_bandwidth'?); names are gpu.peak_flops, gpu.hbm_bandwidth, gpu.memory, network.nvlink, "
            "network.intra_node, network.pcie, network.nic, network.nics, network.oversubscription, "
            "network.latency, "
            "host.launch_interval, host.launch_rate, op.NAME.speedup, gpu.KEY for any key of a GPU, or a key "
            "of the "
            "configuration such as plan.micro_batch_size");
  EXPECT_NE(error("gpu.matmul_eficiency=+1%").find("did you mean 'gpu.matmul_efficiency'?"),
            std::string::npos);
  EXPECT_NE(error("gpu.hbm=x2").find("did you mean 'gpu.hbm_bandwidth'?"), std::string::npos);
  EXPECT_NE(error("wheel=x2").find("'wheel' is not known; names are"), std::string::npos);
  EXPECT_EQ(
      error("op.attn.speedup=2"),
      "trainsim: error: --what-if op.attn.speedup=2: 'attn' is no operation; operations are matmul, "
      "attention, "
      "norm, activation, residual, rotary, embedding, loss, accumulation, routing, optimizer or memory");
  EXPECT_NE(error("op.atention.speedup=2").find("(did you mean 'attention'?)"), std::string::npos);
  EXPECT_EQ(error("op.norm=2"),
            "trainsim: error: --what-if op.norm=2: write op.norm.speedup, as in op.norm.speedup=2");
}

TEST_F(WhatIf, ValuesThatCantBeReadAreErrorsWithACure) {
  EXPECT_EQ(error("gpu.memory"),
            "trainsim: error: --what-if gpu.memory: a change needs a '=', as in gpu.hbm_bandwidth=+20% or "
            "network.nic=800 Gb/s");
  EXPECT_EQ(error("=2"), "trainsim: error: --what-if =2: there is no name before the '='");
  EXPECT_EQ(error("gpus="), "trainsim: error: --what-if gpus=: there is no value behind the '='");
  EXPECT_EQ(
      error("gpu.memory=+20"),
      "trainsim: error: --what-if gpu.memory=+20: '+20' can't be read; write a relative value such as +20%, "
      "-10% or x2");
  EXPECT_EQ(
      error("gpu.memory=-100%"),
      "trainsim: error: --what-if gpu.memory=-100%: '-100%' leaves nothing; write a relative value such as "
      "+20%, -10% or x2");
  EXPECT_NE(error("gpu.memory=x0").find("leaves nothing"), std::string::npos);
  EXPECT_NE(error("gpu.memory=x2%").find("can't be read"), std::string::npos);
  EXPECT_EQ(error("plan.precision=x2"),
            "trainsim: error: --what-if plan.precision=x2: plan.precision is bf16, which is no number to "
            "change by a "
            "factor; give a value, as in plan.precision=VALUE");
  EXPECT_EQ(
      error("network.latency=1 us"),
      "trainsim: error: --what-if network.latency=1 us: network.latency takes relative values only, such as "
      "+20%, -10% or x2");
  EXPECT_NE(error("plan.tensor_paralel=x2").find("(did you mean 'plan.tensor_parallel'?)"),
            std::string::npos);
  EXPECT_EQ(
      error("cluster.max_gpus=x2"),
      "trainsim: error: --what-if cluster.max_gpus=x2: cluster.max_gpus has no value in this configuration");
}

TEST_F(WhatIf, AShortNameNeedsWhatItStandsFor) {
  write("topologies/clusters/alone.yaml",
        "gpu: chip\ngpus_per_node: 8\ncollective_latency: 8 us\npoint_to_point_latency: 5 us\n"
        "intra_node: {kind: nvswitch, bandwidth: 300 GB/s, efficiency: 0.8, latency: 1 us}\n");
  base_ = loaded(write("alone.yaml", "model: small\ncluster: alone\ngpus: 8\nplan: {}\n"));
  const std::string message =
      "network.nic stands for cluster.nic.bandwidth, which has no value in this configuration";
  EXPECT_EQ(error("network.nic=x2"), "trainsim: error: --what-if network.nic=x2: " + message);
  EXPECT_EQ(error("network.nic=800 Gb/s"), "trainsim: error: --what-if network.nic=800 Gb/s: " + message);
}

TEST(Changes, AreSplitAtCommasOutsideOfBracketsAndQuotes) {
  EXPECT_EQ(split_changes("gpus=8"), Texts{"gpus=8"});
  EXPECT_EQ(split_changes("a=[1, 2],b={c: 1, d: 2},e='x,y'"),
            (Texts{"a=[1, 2]", "b={c: 1, d: 2}", "e='x,y'"}));
}

}  // namespace
}  // namespace trainsim::config
