// SPDX-License-Identifier: Apache-2.0
// Offloading to the host, by hand for a GPT of two layers and hosts of round numbers.
#include "sim/lowering/host.hpp"

#include <gtest/gtest.h>

#include "sim/lowering/state.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::Framework;
using plan::OffloadTarget;
using plan::ParallelPlan;
using plan::Sharding;
using program::Cause;
using tests::gpt;
using tests::of;
using tests::split_plan;

constexpr std::int64_t kLayers = 2;
/// 12 h^2 + 13 h of a layer with h = 512; 8192 words, 256 positions and a final norm.
constexpr std::int64_t kParameters = kLayers * (12 * 512 * 512 + 13 * 512) + (8192 + 256 + 2) * 512;

/// 200 GB/s for optimizers; a GPU copies 20 GB/s alone, and 10 GB/s when eight do; disks read 8 and write 4
/// GB/s.
hardware::ClusterSpec cluster_with_host() {
  return tests::round_cluster();
}

/// DeepSpeed with bf16, which gives fp32 sums of gradients on the host.
ParallelPlan offloaded(Sharding sharding, OffloadTarget optimizer, OffloadTarget parameters,
                       std::int64_t data = 1) {
  ParallelPlan plan = split_plan({1, 1, 1, data}, 1);
  plan.framework = Framework::kDeepSpeed;
  plan.sharding = sharding;
  plan.offload = {optimizer, parameters};
  return plan;
}

program::Timeline run_with_host(const ParallelPlan& plan, const hardware::ClusterSpec& cluster) {
  return engine::make_ideal_executor()->run(tests::make_job(gpt({kLayers}), cluster, plan));
}

/// Compute waits for the copy of all gradients (2 bytes) and for the update: gradient 4, master and moments
/// 12 read and written, parameter 2, that is 30 bytes.
TEST(Offload, WithoutOverlapCostsTheCopyAndTheUpdate) {
  ParallelPlan plan = offloaded(Sharding::kZero1, OffloadTarget::kCpu, OffloadTarget::kNone);
  plan.overlap_gradient_reduction = false;
  const program::Timeline timeline = run_with_host(plan, cluster_with_host());
  const auto n = static_cast<double>(kParameters);
  EXPECT_NEAR(of(timeline.ranks[0], Cause::kOffload), n * 2 / 20e9 + n * 30 / 200e9, 1e-12);
  EXPECT_EQ(of(timeline.ranks[0], Cause::kOptimizer), 0);
}

/// Copies that backward hides cost nothing: the embedding's, which come last, stay.
TEST(Offload, CopiesGradientsUnderBackward) {
  ParallelPlan plan = offloaded(Sharding::kZero1, OffloadTarget::kCpu, OffloadTarget::kNone);
  plan.bucket_parameters = 1;
  const Seconds waited = of(run_with_host(plan, cluster_with_host()).ranks[0], Cause::kOffload);
  const Seconds update = static_cast<double>(kParameters) * 30 / 200e9;
  const Seconds all = static_cast<double>(kParameters) * 2 / 20e9;
  EXPECT_GE(waited, update + (8192 + 256) * 512 * 2 / 20e9 - 1e-12);
  EXPECT_LT(waited, update + all);
}

/// Eight ranks update an eighth each with an eighth of the host's memory, so that the update takes the same
/// time; each copies an eighth at 10 instead of 20 GB/s.
TEST(Offload, SharesTheHost) {
  ParallelPlan plan = offloaded(Sharding::kZero1, OffloadTarget::kCpu, OffloadTarget::kNone, 8);
  plan.overlap_gradient_reduction = false;
  const auto n = static_cast<double>(kParameters);
  EXPECT_NEAR(of(run_with_host(plan, cluster_with_host()).ranks[0], Cause::kOffload),
              n / 8 * 2 / 10e9 + n * 30 / 200e9, 1e-12);
}

/// Twelve bytes are read at 8 GB/s and written at 4 GB/s, which is slower than the update.
TEST(Offload, ToDisksTakesAsLongAsTheDisks) {
  ParallelPlan plan = offloaded(Sharding::kZero1, OffloadTarget::kNvme, OffloadTarget::kNone);
  plan.overlap_gradient_reduction = false;
  const auto n = static_cast<double>(kParameters);
  EXPECT_NEAR(of(run_with_host(plan, cluster_with_host()).ranks[0], Cause::kOffload),
              n * 2 / 20e9 + n * 12 * (1 / 8e9 + 1 / 4e9), 1e-12);
}

/// A host without limits leaves the step of a GPU that has nothing to do for its optimizer.
TEST(Offload, ToAHostWithoutLimitsCostsNothing) {
  hardware::ClusterSpec cluster = cluster_with_host();
  cluster.host = hardware::HostSpec{Bytes{1} << 40, 1e30, 1.0, 1e30, 1e30, 1.0, 1e30, 1e30};
  const auto both = offloaded(Sharding::kZero3, OffloadTarget::kNvme, OffloadTarget::kNvme);
  const program::Timeline timeline = run_with_host(both, cluster);
  const program::Timeline kept =
      run_with_host(offloaded(Sharding::kNone, OffloadTarget::kNone, OffloadTarget::kNone), cluster);
  EXPECT_NEAR(timeline.step_time, kept.step_time - of(kept.ranks[0], Cause::kOptimizer), 1e-9);
}

TEST(Offload, OfParametersNeverMakesAStepShorter) {
  Seconds before = 0;
  for (const double rate : {1e12, 20e9, 5e9, 1e9}) {
    hardware::ClusterSpec cluster = cluster_with_host();
    cluster.host->pcie_bandwidth = cluster.host->uplink_bandwidth = rate;
    const auto plan = offloaded(Sharding::kZero3, OffloadTarget::kCpu, OffloadTarget::kCpu);
    const Seconds step = run_with_host(plan, cluster).step_time;
    EXPECT_GE(step, before);
    before = step;
  }
  // At 1 GB/s copies are all that counts: two bytes a parameter in for forward and again, without the root,
  // for backward.
  EXPECT_GE(before, static_cast<double>(kParameters) * 2 / 1e9);
}

/// A GPU that offloads nothing keeps parameter and gradient in bf16, a sum of gradients, a master parameter
/// and two moments: 2 + 2 + 4 + 4 + 8 bytes.
TEST(Offload, MovesStateFromDeviceToHost) {
  const auto bytes = [](const ParallelPlan& plan, StatePlace place) {
    Bytes sum = 0;
    for (const StateTensor& tensor : state_tensors(gpt({kLayers}), plan, 0)) {
      const bool buffer = tensor.category == program::MemoryCategory::kCommunicationBuffers;
      if (tensor.place == place && !buffer) sum += tensor.bytes;
    }
    return sum;
  };
  using enum OffloadTarget;
  const auto with = [](Sharding sharding, OffloadTarget optimizer, OffloadTarget parameters) {
    return offloaded(sharding, optimizer, parameters);
  };
  EXPECT_EQ(bytes(with(Sharding::kZero2, kNone, kNone), StatePlace::kDevice), 20 * kParameters);
  // ZeRO-1 keeps gradients in bf16 until they are reduced, ZeRO-2 hands them over at once.
  EXPECT_EQ(bytes(with(Sharding::kZero1, kCpu, kNone), StatePlace::kDevice), 4 * kParameters);
  EXPECT_EQ(bytes(with(Sharding::kZero2, kCpu, kNone), StatePlace::kDevice), 2 * kParameters);
  EXPECT_EQ(bytes(with(Sharding::kZero2, kCpu, kNone), StatePlace::kHost), 16 * kParameters);
  EXPECT_EQ(bytes(with(Sharding::kZero3, kCpu, kCpu), StatePlace::kDevice), 0);
  EXPECT_EQ(bytes(with(Sharding::kZero3, kCpu, kCpu), StatePlace::kHost), 18 * kParameters);
  EXPECT_EQ(bytes(with(Sharding::kZero3, kNvme, kNvme), StatePlace::kDisk), 14 * kParameters);
  EXPECT_EQ(bytes(with(Sharding::kZero3, kNvme, kNvme), StatePlace::kHost), 4 * kParameters);
}

/// FSDP's fp32 parameters, gradients and moments, 4 + 4 + 8 bytes, all go.
TEST(Offload, OfFsdpMovesEverything) {
  ParallelPlan plan = offloaded(Sharding::kZero3, OffloadTarget::kCpu, OffloadTarget::kCpu, 4);
  plan.framework = Framework::kFsdp;
  Bytes host = 0;
  for (const StateTensor& tensor : state_tensors(gpt({kLayers}), plan, 0)) {
    EXPECT_EQ(tensor.place, StatePlace::kHost) << tensor.name;
    host += tensor.bytes;
  }
  EXPECT_NEAR(static_cast<double>(host), 16.0 * kParameters / 4, 64.0);
  // Sixteen ranks on two nodes of eight.
  plan.data_parallel = plan.gpus = 16;
  plan.global_batch_size = 16;
  EXPECT_EQ(host_memory_of_fullest_node(gpt({kLayers}), plan, cluster_with_host()),
            8 * host_state_bytes(gpt({kLayers}), plan, 0));
}

TEST(Offload, IsFoldedExactly) {
  const auto plan = offloaded(Sharding::kZero3, OffloadTarget::kCpu, OffloadTarget::kCpu, 8);
  const auto step = [&](bool fold) {
    return engine::make_ideal_executor()
        ->run(tests::make_job(gpt({kLayers}), cluster_with_host(), plan, {fold, false}))
        .step_time;
  };
  EXPECT_NEAR(step(true), step(false), 1e-12);
}

}  // namespace
}  // namespace trainsim::lowering
