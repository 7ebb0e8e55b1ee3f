// SPDX-License-Identifier: Apache-2.0
// Activations on the host, by hand. Layers are those of a GPT with h = 512, a = 8, s = 256; a host copies 20
// GB/s for one GPU.
#include "sim/lowering/activation_offload.hpp"

#include <gtest/gtest.h>

#include "sim/lowering/state.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::Framework;
using plan::ParallelPlan;
using program::Cause;
using program::Instruction;
using program::MemoryCategory;
using program::Opcode;
using program::Program;
using program::Stream;
using tests::gpt;
using tests::split_plan;

constexpr std::int64_t kSbh = 256 * 512;
/// s b h (34 + 5 a s / h) and the input of a layer.
constexpr Bytes kLayer = kSbh * 54;
constexpr Bytes kInput = kSbh * 2;
constexpr Bytes kMask = kSbh;
constexpr double kCopyRate = 20e9;

hardware::ClusterSpec cluster_with_host(BytesPerSecond rate = kCopyRate) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.host = hardware::HostSpec{Bytes{1} << 40, 400e9, 0.5, rate, 8 * rate, 1.0, 0, 0};
  return cluster;
}

ParallelPlan offloaded(std::int64_t layers, std::int64_t micro_batches = 1) {
  ParallelPlan plan = split_plan({}, micro_batches);
  plan.offloaded_layers = layers;
  return plan;
}

Program program_of(std::int64_t layers, const ParallelPlan& plan, const hardware::ClusterSpec& cluster) {
  return lower(gpt({layers}), plan, cluster, schedule::build(plan)).front();
}

program::RankTimeline run(std::int64_t layers, const ParallelPlan& plan,
                          const hardware::ClusterSpec& cluster) {
  return engine::make_ideal_executor()->run(tests::make_job(gpt({layers}), cluster, plan)).ranks.front();
}

/// Seconds of all copies of a direction.
Seconds copies(const Program& program, Stream stream) {
  Seconds sum = 0;
  for (const Instruction& instruction : program.stream(stream)) {
    if (instruction.op == Opcode::kCompute) sum += instruction.amount;
  }
  return sum;
}

/// Two of eight layers have four each; of five, three have 2, 2 and 1.
TEST(ActivationOffload, SpreadsItsWindowsOverAllLayers) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(offload_windows(2, 8), (Layers{3, 7}));
  EXPECT_EQ(offload_windows(3, 5), (Layers{1, 3, 4}));
  EXPECT_EQ(offload_windows(1, 4), (Layers{3}));
  EXPECT_EQ(offload_windows(0, 4), Layers{});
}

TEST(ActivationOffload, CopiesWhatTheLayersKeepOutAndIn) {
  for (const std::int64_t micro_batches : {1, 3}) {
    const Program program = program_of(4, offloaded(2, micro_batches), cluster_with_host());
    const double bytes = static_cast<double>(micro_batches * 2 * kLayer);
    EXPECT_NEAR(copies(program, Stream::kToHost), bytes / kCopyRate, 1e-12);
    EXPECT_NEAR(copies(program, Stream::kFromHost), bytes / kCopyRate, 1e-12);
  }
}

/// Of four layers, the first is gone after the second, the second after the last. So three are there at the
/// end of forward and again when backward begins, beside the embedding's mask; all four and the head's inputs
/// without.
TEST(ActivationOffload, FreesDeviceMemory) {
  const auto activations = [](std::int64_t layers) {
    const memory::Profile profile = memory::replay(program_of(4, offloaded(layers), cluster_with_host()));
    EXPECT_EQ(tests::of(profile.at_end, MemoryCategory::kActivations), 0);
    return tests::of(profile.largest, MemoryCategory::kActivations);
  };
  EXPECT_EQ(activations(0), 4 * kLayer + kMask + 4 * kSbh);
  EXPECT_EQ(activations(2), 3 * kLayer + kMask);
  // The first two of three go after the second and the third layer: never more than two layers are there.
  EXPECT_EQ(activations(3), 2 * kLayer + kMask);
}

/// f and b of a layer are 1 ms and 2 ms, measured; a copy of 7.08 MB takes c. Two of eight layers, windows of
/// W = 4: in forward the first copy has W - 1 layers of time, the other W; in backward the first W and the
/// other W - 1.
TEST(ActivationOffload, HidesCopiesBehindCompute) {
  ParallelPlan plan = offloaded(2);
  plan.profile = {{0.008, 0.016, 0}};
  for (const Seconds copy : {0.001, 0.003, 0.0035, 0.005, 0.007, 0.010}) {
    const hardware::ClusterSpec cluster = cluster_with_host(static_cast<double>(kLayer) / copy);
    const Seconds forward = std::max(0.0, copy - 0.003) + std::max(0.0, copy - 0.004);
    const Seconds backward = std::max(0.0, copy - 0.008) + std::max(0.0, copy - 0.006);
    EXPECT_NEAR(tests::of(run(8, plan, cluster), Cause::kOffload), forward + backward, 1e-9) << copy;
  }
}

/// All but one of eight layers: every copy has the next layer's time, as if there were two buffers.
TEST(ActivationOffload, OfAllLayersButOneHidesBehindOneLayer) {
  ParallelPlan plan = offloaded(7);
  plan.profile = {{0.008, 0.016, 0}};
  for (const Seconds copy : {0.001, 0.0015, 0.003}) {
    const hardware::ClusterSpec cluster = cluster_with_host(static_cast<double>(kLayer) / copy);
    const Seconds waits = 7 * std::max(0.0, copy - 0.001) + 7 * std::max(0.0, copy - 0.002);
    EXPECT_NEAR(tests::of(run(8, plan, cluster), Cause::kOffload), waits, 1e-9) << copy;
  }
}

/// DeepSpeed's cpu_checkpointing: what full recomputation keeps.
TEST(ActivationOffload, OfRecomputedLayersMovesCheckpoints) {
  ParallelPlan plan = offloaded(2);
  plan.framework = Framework::kDeepSpeed;
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  const Program program = program_of(4, plan, cluster_with_host());
  EXPECT_NEAR(copies(program, Stream::kToHost), static_cast<double>(2 * kInput) / kCopyRate, 1e-15);
  EXPECT_EQ(host_memory_of_fullest_node(gpt({4}), plan, cluster_with_host()), 2 * kInput);
}

/// Eight GPUs of a node hold their own; GPipe holds those of all micro-batches.
TEST(ActivationOffload, TakesHostMemory) {
  const hardware::ClusterSpec cluster = cluster_with_host();
  EXPECT_EQ(host_memory_of_fullest_node(gpt({4}), offloaded(0), cluster), 0);
  EXPECT_EQ(host_memory_of_fullest_node(gpt({4}), offloaded(3, 5), cluster), 3 * kLayer);
  ParallelPlan plan = offloaded(3, 5);
  plan.schedule = plan::ScheduleKind::kGpipe;
  EXPECT_EQ(host_memory_of_fullest_node(gpt({4}), plan, cluster), 5 * 3 * kLayer);
  plan = split_plan({1, 1, 1, 8}, 1);
  plan.offloaded_layers = 3;
  EXPECT_EQ(host_memory_of_fullest_node(gpt({4}), plan, cluster), 8 * 3 * kLayer);
}

/// A host without limits costs nothing.
TEST(ActivationOffload, ToAHostWithoutLimitsCostsNothing) {
  const Seconds kept = run(8, offloaded(0, 3), cluster_with_host()).end;
  EXPECT_NEAR(run(8, offloaded(7, 3), cluster_with_host(1e30)).end, kept, 1e-12);
}

}  // namespace
}  // namespace trainsim::lowering
