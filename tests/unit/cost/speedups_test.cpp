// SPDX-License-Identifier: Apache-2.0
// What assuming faster operations changes: the time of their kernels, and nothing else.
#include <gtest/gtest.h>

#include "sim/cost/kernel_model.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::cost {
namespace {

KernelModel model_with(const OpSpeedups& speedups) {
  const hardware::GpuSpec gpu = tests::round_cluster().gpu;
  return {gpu, gpu.peak_bf16, 2, 0, false, speedups};
}

OpSpeedups twice(OpClass op) {
  OpSpeedups speedups;
  speedups.of(op) = 2;
  return speedups;
}

TEST(Speedups, HalveTheTimeOfTheirKernelsOnly) {
  const KernelModel plain = model_with({});
  const KernelModel matmul = model_with(twice(OpClass::kMatmul));
  const KernelModel norm = model_with(twice(OpClass::kNorm));
  const MatmulShape shape = {1, 512, 1024, 256};
  EXPECT_EQ(matmul.matmul("mlp in", shape).seconds, plain.matmul("mlp in", shape).seconds / 2);
  EXPECT_EQ(norm.matmul("mlp in", shape).seconds, plain.matmul("mlp in", shape).seconds);
  EXPECT_EQ(norm.stream("norm", 1e9).seconds, plain.stream("norm", 1e9).seconds / 2);
  EXPECT_EQ(norm.stream("rotary", 1e9).seconds, plain.stream("rotary", 1e9).seconds);
  EXPECT_EQ(matmul.matmul("mlp in", shape).flops, plain.matmul("mlp in", shape).flops);
}

TEST(Speedups, ReachEveryKindOfKernel) {
  const KernelModel plain = model_with({});
  const AttentionShape shape = {1, 1024, 8, 8, 64, 64};
  const KernelModel attention = model_with(twice(OpClass::kAttention));
  EXPECT_EQ(attention.attention_forward("attention", shape).seconds,
            plain.attention_forward("attention", shape).seconds / 2);
  EXPECT_EQ(attention.attention_backward("attention backward", shape).seconds,
            plain.attention_backward("attention backward", shape).seconds / 2);
  EXPECT_EQ(model_with(twice(OpClass::kResidual)).random_stream("dropout", 1e9).seconds,
            plain.random_stream("dropout", 1e9).seconds / 2);
  EXPECT_EQ(
      model_with(twice(OpClass::kOptimizer)).stream("adam", 1e9, 4, program::KernelKind::kOptimizer).seconds,
      plain.stream("adam", 1e9, 4, program::KernelKind::kOptimizer).seconds / 2);
}

TEST(Speedups, AreOfMultipliesBesideCommunicationToo) {
  const KernelModel plain = model_with({});
  const KernelModel matmul = model_with(twice(OpClass::kMatmul));
  const MatmulShape shape = {1, 4096, 4096, 4096};
  // Communication that outlasts the multiply, both ways: all of it runs on fewer multiprocessors.
  EXPECT_EQ(matmul.matmul_beside("qkv", shape, {}, 1e3).seconds,
            plain.matmul_beside("qkv", shape, {}, 1e3).seconds / 2);
}

}  // namespace
}  // namespace trainsim::cost
