// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernel_model.hpp"

#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "sim/config/experiment.hpp"

namespace trainsim::cost {
namespace {

using program::Kernel;
using program::KernelKind;
using program::Segment;

constexpr FlopsPerSecond kPeak = 1000.0 * 536'870'912;  // 1000 * 2^29
constexpr Seconds kMillisecond = 1e-3;

/// Four multiprocessors that together reach half of the peak, 2^28 * 1000, so each 2^26 * 1000. A tile of
/// 128 x 256 with k = 896 takes as long as one with k = 896 + 128 = 1024 and no prologue, which is
/// 2 * 128 * 256 * 1024 = 2^26 operations: 1 ms. Memory is too fast to matter, launches cost nothing.
hardware::GpuSpec toy_gpu() {
  hardware::GpuSpec gpu;
  gpu.name = "toy";
  gpu.memory_bandwidth = 1e15;
  gpu.memory_efficiency = 0.5;
  gpu.random_efficiency = 0.25;
  gpu.matmul_efficiency = 0.5;
  gpu.matmul_half_k = 128;
  gpu.tile_m = 128;
  gpu.tile_n = 256;
  gpu.multiprocessors = 4;
  gpu.communication_multiprocessors = 1;
  gpu.attention_efficiency_forward = 0.5;
  gpu.attention_efficiency_backward = 0.25;
  return gpu;
}

/// The toy with memory that moves 1 GB/s of its 2 GB/s, and 0.5 GB/s with random numbers.
hardware::GpuSpec slow_memory_gpu() {
  hardware::GpuSpec gpu = toy_gpu();
  gpu.memory_bandwidth = 2e9;
  return gpu;
}

KernelModel model_of(const hardware::GpuSpec& gpu, std::int64_t element_bytes = 2,
                     Seconds launch_interval = 0) {
  return {gpu, kPeak, element_bytes, launch_interval};
}

Seconds matmul_seconds(const MatmulShape& shape, const MatmulOutput& output = {}) {
  return model_of(toy_gpu()).matmul("multiply", shape, output).seconds;
}

/// Smaller tiles run at part of the full tile's rate: 128 x 128 at 0.95, 64 x 64 at 0.75.
constexpr Seconds kHalfTile = 0.5 / 0.95 * kMillisecond;
constexpr Seconds kSmallTile = 0.125 / 0.75 * kMillisecond;
constexpr double kTight = 1e-12;

TEST(Matmul, TakesTheTimeOfOneTileForAFullWave) {
  // 256 x 512 are 2 x 2 tiles, one on each multiprocessor.
  const Kernel kernel = model_of(toy_gpu()).matmul("multiply", {1, 256, 512, 896});
  EXPECT_NEAR(kernel.seconds, kMillisecond, kTight);
  EXPECT_EQ(kernel.flops, 2.0 * 256 * 512 * 896);
  EXPECT_EQ(kernel.bytes, 2.0 * (256 * 896 + 896 * 512 + 256 * 512));
  EXPECT_EQ(kernel.kind, KernelKind::kMatmul);
  EXPECT_EQ(kernel.launches, 1);
}

TEST(Matmul, TakesThatTimeAlsoWhenTheWaveIsNotFull) {
  // A single element wastes a whole tile of the smallest kind.
  EXPECT_NEAR(matmul_seconds({1, 1, 1, 896}), kSmallTile, kTight);
  EXPECT_NEAR(matmul_seconds({1, 64, 64, 896}), kSmallTile, kTight);
}

TEST(Matmul, TakesTwiceAsLongWithOneTileMoreThanMultiprocessors) {
  // 64 x 64 is the smallest tile, so that no other choice helps: four products fill the GPU, five need two
  // waves, and so do eight.
  EXPECT_NEAR(matmul_seconds({4, 64, 64, 896}), kSmallTile, kTight);
  EXPECT_NEAR(matmul_seconds({5, 64, 64, 896}), 2 * kSmallTile, kTight);
  EXPECT_NEAR(matmul_seconds({8, 64, 64, 896}), 2 * kSmallTile, kTight);
  EXPECT_NEAR(matmul_seconds({9, 64, 64, 896}), 3 * kSmallTile, kTight);
}

TEST(Matmul, TakesSmallerTilesWhenTheyWasteLess) {
  // 640 x 256: five full tiles, two waves, 2 ms; ten of 128 x 128, three waves, 3 * 0.5 / 0.95 = 1.579 ms;
  // forty of 64 x 64, ten waves, 10 * 0.125 / 0.75 = 1.667 ms.
  EXPECT_NEAR(matmul_seconds({1, 640, 256, 896}), 3 * kHalfTile, kTight);
}

TEST(Matmul, MayTurnItsTiles) {
  // Four products of 256 x 128 fill four full tiles that lie the other way round.
  EXPECT_NEAR(matmul_seconds({4, 128, 256, 896}), kMillisecond, kTight);
  EXPECT_NEAR(matmul_seconds({4, 256, 128, 896}), kMillisecond, kTight);
}

TEST(Matmul, LosesHalfOfItsRateAtTheHalfK) {
  // k = 128: 1 ms * (128 + 128) / 1024 = 0.25 ms, although 128 / 1024 of the work would be 0.125 ms.
  EXPECT_NEAR(matmul_seconds({1, 256, 512, 128}), 0.25 * kMillisecond, kTight);
}

TEST(Matmul, IsNeverFasterThanItsMemoryTraffic) {
  // One row: (1000 + 1000 * 1000 + 1000) elements of 2 bytes at 1 GB/s, 2.004 ms. Tiles: 1000 / 64 = 16 of
  // 64 x 64, four waves, 0.667 ms * 1128 / 1024 = 0.734 ms.
  const KernelModel model = model_of(slow_memory_gpu());
  const Kernel kernel = model.matmul("multiply", {1, 1, 1000, 1000});
  EXPECT_EQ(kernel.bytes, 2'004'000);
  EXPECT_NEAR(kernel.seconds, 2.004 * kMillisecond, kTight);
}

TEST(Matmul, CountsAnFp32OutputThatIsReadAndWritten) {
  // 128 x 128 with k = 1: inputs 256 elements of 2 bytes, output 16,384 elements read and written with 4.
  const KernelModel model = model_of(slow_memory_gpu());
  const Kernel kernel = model.matmul("gradient", {1, 128, 128, 1}, {4, true});
  EXPECT_EQ(kernel.bytes, 512 + 16'384 * 8);
  EXPECT_EQ(model.matmul("product", {1, 128, 128, 1}, {4, false}).bytes, 512 + 16'384 * 4);
  EXPECT_EQ(model_of(slow_memory_gpu(), 4).matmul("fp32", {1, 128, 128, 1}, {4, false}).bytes,
            1024 + 16'384 * 4);
}

TEST(Matmul, TakesFivePercentLongerWhenItAccumulates) {
  EXPECT_NEAR(matmul_seconds({1, 256, 512, 896}, {4, true}), 1.05 * kMillisecond, kTight);
  EXPECT_NEAR(matmul_seconds({1, 256, 512, 896}, {4, false}), kMillisecond, kTight);
}

TEST(Matmul, RunsAtTheRateOfEightBitsButFillsTilesNoFaster) {
  hardware::GpuSpec gpu = toy_gpu();
  gpu.peak_fp8 = 2 * kPeak;
  // k = 896 of which 128 more are filling: half of the first, all of the second.
  EXPECT_NEAR(model_of(gpu).matmul("multiply", {1, 256, 512, 896, true}).seconds,
              (448.0 + 128.0) / 1024.0 * kMillisecond, kTight);
  gpu.fp8_matmul_efficiency = gpu.matmul_efficiency / 2;
  EXPECT_NEAR(model_of(gpu).matmul("multiply", {1, 256, 512, 896, true}).seconds, kMillisecond, kTight);
  // Operands of one byte, output of two.
  EXPECT_EQ(model_of(gpu).matmul("product", {1, 128, 64, 32, true}).bytes, 128 * 32 + 32 * 64 + 2 * 128 * 64);
}

TEST(Matmul, OfAGroupFollowEachOther) {
  hardware::GpuSpec gpu = toy_gpu();
  const auto seconds = [&gpu](const MatmulShape& shape) {
    return model_of(gpu).matmul_group("experts", shape).seconds;
  };
  // Each fills its tiles alone: a millisecond for every one, however few of the multiprocessors it needs.
  EXPECT_NEAR(seconds({3, 256, 512, 896}), 3 * kMillisecond, kTight);
  EXPECT_NEAR(seconds({3, 128, 256, 896}), 3 * model_of(gpu).matmul("one", {1, 128, 256, 896}).seconds,
              kTight);
  EXPECT_EQ(model_of(gpu).matmul_group("experts", {3, 256, 512, 896}).flops, 3 * 2.0 * 256 * 512 * 896);
  gpu.group_launch_interval = 2 * kMillisecond;
  EXPECT_NEAR(seconds({3, 256, 512, 896}), 6 * kMillisecond, kTight);
}

TEST(Stream, PutsRowsInAnotherOrderAtARateOfItsOwn) {
  hardware::GpuSpec gpu = toy_gpu();
  gpu.memory_bandwidth = 1e9;
  gpu.memory_efficiency = 1.0;
  EXPECT_NEAR(model_of(gpu).permutation("permute", 1e6).seconds, kMillisecond, kTight);
  gpu.permute_efficiency = 0.5;
  EXPECT_NEAR(model_of(gpu).permutation("permute", 1e6).seconds, 2 * kMillisecond, kTight);
}

/// 1.4 TB/s where other kernels reach 2.2 (github.com/pytorch/pytorch/issues/133242).
TEST(Stream, WritesByColumnsMoreSlowly) {
  hardware::GpuSpec gpu = toy_gpu();
  gpu.memory_bandwidth = 2.2e12;
  gpu.memory_efficiency = 1.0;
  const program::Kernel kernel = model_of(gpu).transposition("transpose", 1.4e9);
  EXPECT_NEAR(kernel.seconds, kMillisecond, kTight);
  EXPECT_EQ(kernel.bytes, 1.4e9);
}

TEST(Matmul, PaysTheKernelOverheadOnce) {
  hardware::GpuSpec gpu = toy_gpu();
  gpu.kernel_overhead = 3e-6;
  EXPECT_NEAR(model_of(gpu).matmul("multiply", {1, 256, 512, 896}).seconds, kMillisecond + 3e-6, kTight);
}

/// The toy with 100 W whatever its clock, and 800 W more at full clock.
hardware::GpuSpec limited_gpu(Watts limit) {
  hardware::GpuSpec gpu = slow_memory_gpu();
  gpu.memory_bandwidth = 1e15;
  gpu.rated_power = 900;
  gpu.static_power = 100;
  gpu.power_limit = limit;
  return gpu;
}

TEST(PowerLimit, SlowsMultipliesByTheCubeRootOfWhatIsLeft) {
  // An eighth of the dynamic power is half of the clock.
  EXPECT_DOUBLE_EQ(limited_gpu(200).clock_share(), 0.5);
  EXPECT_DOUBLE_EQ(limited_gpu(900).clock_share(), 1.0);
  EXPECT_NEAR(model_of(limited_gpu(200)).matmul("multiply", {1, 256, 512, 896}).seconds, 2 * kMillisecond,
              kTight);
  const AttentionShape shape{1, 4096, 8, 8, 128, 128};
  EXPECT_NEAR(model_of(limited_gpu(200)).attention_forward("attention", shape).seconds,
              2 * model_of(limited_gpu(900)).attention_forward("attention", shape).seconds, kTight);
}

TEST(PowerLimit, LeavesMemoryAlone) {
  hardware::GpuSpec gpu = limited_gpu(200);
  gpu.memory_bandwidth = 2e9;
  EXPECT_DOUBLE_EQ(model_of(gpu).stream("copy", 1e6).seconds, 1e-3);
}

TEST(Matmul, MayHaveTilesOfASingleElement) {
  // 2 x 2 tiles of one element on four multiprocessors; in a process of its own, lest it ends this one.
  const auto multiply = [] {
    hardware::GpuSpec gpu = toy_gpu();
    gpu.tile_m = gpu.tile_n = 1;
    const Seconds seconds = model_of(gpu).matmul("multiply", {1, 2, 2, 896}).seconds;
    std::exit(std::isfinite(seconds) && seconds > 0 ? 0 : 1);
  };
  EXPECT_EXIT(multiply(), testing::ExitedWithCode(0), "");
}

/// Time of a shape that differs from a common one in one dimension: 0 batch, 1 m, 2 n, 3 k.
Seconds seconds_along(const KernelModel& model, int dimension, std::int64_t size) {
  std::array<std::int64_t, 4> sizes = {3, 384, 640, 768};
  sizes[static_cast<std::size_t>(dimension)] = size;
  return model.matmul("multiply", {sizes[0], sizes[1], sizes[2], sizes[3]}).seconds;
}

TEST(Matmul, NeverGetsFasterWithMoreWork) {
  const hardware::GpuSpec a100 = config::load_cluster("dgx-a100-80gb").gpu;
  for (const hardware::GpuSpec& gpu : {toy_gpu(), slow_memory_gpu(), a100}) {
    const KernelModel model = model_of(gpu);
    for (int dimension = 0; dimension < 4; ++dimension) {
      Seconds before = 0;
      // Steps of 8, because rows that are not aligned for tensor cores cost more than longer ones.
      for (std::int64_t size = 8; size <= 2048; size += 8) {
        const Seconds now = seconds_along(model, dimension, size);
        ASSERT_GE(now, before) << gpu.name << ", dimension " << dimension << ", size " << size;
        before = now;
      }
      EXPECT_GT(before, seconds_along(model, dimension, 8)) << gpu.name << ", dimension " << dimension;
    }
  }
}

TEST(Matmul, GoesWithoutTensorCoresWhenRowsOfABatchAreNotAligned) {
  // 2 * 3 * 64 * 64 * 100 operations at 0.53 of 1 TFLOP/s; rows of 100 elements have 200 bytes, no multiple
  // of 16.
  hardware::GpuSpec gpu = toy_gpu();
  gpu.peak_fp32 = 1e12;
  const KernelModel model = model_of(gpu);
  const Seconds plain = 2.0 * 3 * 64 * 64 * 100 / 0.53e12;
  EXPECT_NEAR(model.matmul("k", {3, 64, 64, 100}).seconds, plain, kTight);
  EXPECT_NEAR(model.matmul("n", {3, 64, 100, 64}).seconds, plain, kTight);
  // Aligned, or one multiply alone, whose rows are those of a whole tensor: tiles as ever.
  EXPECT_NEAR(model.matmul("aligned", {3, 64, 64, 104}).seconds, kSmallTile * (104 + 128) / 1024, kTight);
  EXPECT_NEAR(model.matmul("alone", {1, 64, 64, 100}).seconds, kSmallTile * (100 + 128) / 1024, kTight);
}

TEST(Attention, CountsBothMultipliesInFullAndRunsTheCausalHalf) {
  // b = 2, s = 1024, 2 heads of 128. Two multiplies of 2 * 4 s^2 * 128 = 2^30 operations: 2^31 in all.
  // Executed are whole blocks of 128 up to the diagonal, 2 * 2 * 4 * 1024 * (1024 + 128) / 2 * 128 = 1.125 *
  // 2^30 operations, at half of the peak 4.5 ms. The longest of the 32 tiles has 2 * 2 * 128 * 1152 * 128
  // operations, 1.125 ms on one of four multiprocessors; 0.6 of it are idle at the end.
  const Kernel kernel = model_of(toy_gpu()).attention_forward("attention", {2, 1024, 2, 2, 128, 128});
  EXPECT_EQ(kernel.flops, 2'147'483'648.0);
  EXPECT_NEAR(kernel.seconds, (4.5 + 0.6 * 1.125) * kMillisecond, kTight);
  EXPECT_EQ(kernel.kind, KernelKind::kAttention);
}

TEST(Attention, CountsTwiceAsManyBackward) {
  // Five multiplies executed at half of the forward's rate, 5 * 4.5 ms, with the longest tile of 5 * 1.125
  // ms; four counted.
  const Kernel kernel = model_of(toy_gpu()).attention_backward("attention", {2, 1024, 2, 2, 128, 128});
  EXPECT_EQ(kernel.flops, 4'294'967'296.0);
  EXPECT_NEAR(kernel.seconds, (5 * 4.5 + 0.2 * 5 * 1.125) * kMillisecond, kTight);
}

TEST(Attention, IsSlowerWithNarrowHeadsAndBackwardWithWideOnes) {
  const KernelModel model = model_of(toy_gpu());
  const auto forward = [&](std::int64_t heads, std::int64_t width) {
    return model.attention_forward("attention", {1, 1024, heads, heads, width, width}).seconds;
  };
  const auto backward = [&](std::int64_t heads, std::int64_t width) {
    return model.attention_backward("attention", {1, 1024, heads, heads, width, width}).seconds;
  };
  // 64 / (64 + 32) against 128 / (128 + 32), with as many tiles of half the work.
  EXPECT_NEAR(forward(8, 64), forward(8, 128) / 2 / (64.0 / 96 * 160 / 128), kTight);
  EXPECT_NEAR(forward(8, 256), 2 * forward(8, 128), kTight);
  EXPECT_NEAR(backward(8, 256), 2 * backward(8, 128) / 0.78, kTight);
}

TEST(Attention, OfFewTilesTakesAsLongAsItsLongestOne) {
  // One sequence of 128 with one head is one tile: 2 * 2 * 128 * 256 * 128 operations on one of four
  // multiprocessors, 0.25 ms, times 1.5.
  const Kernel kernel = model_of(toy_gpu()).attention_forward("attention", {1, 128, 1, 1, 128, 128});
  EXPECT_NEAR(kernel.seconds, 1.5 * 0.25 * kMillisecond, kTight);
}

TEST(Attention, MovesFewerBytesWithFewerKeyValueHeads) {
  // Queries and output of 2048 x 256, keys and values of 2048 x 128, 2 bytes each: 3,145,728 bytes. Backward
  // also moves the gradients: twice that.
  const KernelModel model = model_of(slow_memory_gpu());
  const AttentionShape grouped = {2, 1024, 4, 2, 64, 64};
  EXPECT_EQ(model.attention_forward("attention", grouped).bytes, 3'145'728);
  EXPECT_EQ(model.attention_backward("attention", grouped).bytes, 6'291'456);
  EXPECT_EQ(model.attention_forward("attention", grouped).flops, 2'147'483'648.0);
}

TEST(Attention, IsNeverFasterThanItsMemoryTraffic) {
  // One token: 2 * (256 + 256) * 2 bytes at 10 MB/s are 204.8 us; its one block takes 113 us.
  hardware::GpuSpec gpu = toy_gpu();
  gpu.memory_bandwidth = 2e7;
  const Kernel kernel = model_of(gpu).attention_forward("attention", {1, 1, 4, 4, 64, 64});
  EXPECT_NEAR(kernel.seconds, 204.8e-6, 1e-15);
}

TEST(Attention, PaysItsOverheadOnce) {
  hardware::GpuSpec gpu = toy_gpu();
  const AttentionShape shape = {2, 1024, 2, 2, 128, 128};
  const Seconds without = model_of(gpu).attention_forward("attention", shape).seconds;
  gpu.attention_overhead = 7e-6;
  EXPECT_NEAR(model_of(gpu).attention_forward("attention", shape).seconds, without + 7e-6, kTight);
}

/// Compute-bound, the kernel alone is slower, and not what begins it.
TEST(Attention, OfOlderGenerationsRunsAtAShareOfTheRate) {
  hardware::GpuSpec gpu = toy_gpu();
  gpu.flash_2_efficiency = 0.6;
  gpu.flash_1_efficiency = 0.3;
  const KernelModel model = model_of(gpu);
  AttentionShape shape{1, 65536, 8, 8, 128, 128};
  const auto seconds = [&](int generation) {
    shape.generation = generation;
    return model.attention_forward("attention", shape).seconds - gpu.kernel_overhead;
  };
  EXPECT_NEAR(seconds(2), seconds(0) / 0.6, 1e-9 * seconds(2));
  EXPECT_NEAR(seconds(1), seconds(0) / 0.3, 1e-9 * seconds(1));
}

TEST(Stream, TakesItsBytesAndOneOverheadPerLaunch) {
  hardware::GpuSpec gpu = slow_memory_gpu();
  gpu.kernel_overhead = 3e-6;
  const Kernel kernel = model_of(gpu).stream("norm", 1e6, 2);
  EXPECT_NEAR(kernel.seconds, 1e-3 + 2 * 3e-6, kTight);
  EXPECT_EQ(kernel.launches, 2);
  EXPECT_EQ(kernel.bytes, 1e6);
  EXPECT_EQ(kernel.flops, 0);
  EXPECT_EQ(kernel.kind, KernelKind::kMemory);
  EXPECT_EQ(model_of(gpu).stream("adam", 1, 1, KernelKind::kOptimizer).kind, KernelKind::kOptimizer);
}

TEST(Stream, IsSlowerWithRandomNumbers) {
  hardware::GpuSpec gpu = slow_memory_gpu();
  gpu.kernel_overhead = 3e-6;
  // 1 MB at a quarter of 2 GB/s.
  const Kernel kernel = model_of(gpu).random_stream("dropout", 1e6);
  EXPECT_NEAR(kernel.seconds, 2e-3 + 3e-6, kTight);
  EXPECT_EQ(kernel.bytes, 1e6);
  EXPECT_EQ(kernel.launches, 1);
}

TEST(Segments, KnowTheGpusTimeAndTheHosts) {
  const KernelModel model = model_of(slow_memory_gpu(), 2, 10e-6);
  const Segment segment =
      model.segment("part", {model.stream("a", 1e6), model.stream("b", 2e6, 3), model.stream("c", 0)});
  EXPECT_NEAR(segment.seconds, 3e-3, kTight);
  EXPECT_NEAR(segment.launch_seconds, 5 * 10e-6, kTight);
  EXPECT_EQ(segment.kernels.size(), 3U);
}

TEST(Segments, AddUpTheOperationsOfTheirKernels) {
  const KernelModel model = model_of(toy_gpu());
  const Segment segment = model.segment(
      "part", {model.matmul("a", {1, 2, 3, 4}), model.stream("b", 100), model.matmul("c", {5, 1, 1, 1})});
  EXPECT_EQ(segment.flops, 48 + 10);
}

TEST(Segments, SayWhetherTheHostWaitsForEachKernel) {
  const KernelModel blocking(toy_gpu(), kPeak, 2, 10e-6, true);
  EXPECT_TRUE(blocking.segment("part", {blocking.stream("a", 1e6)}).blocking);
  EXPECT_FALSE(model_of(toy_gpu()).segment("part", {}).blocking);
}

TEST(Segments, OfNothingTakeNoTime) {
  const Segment segment = model_of(toy_gpu(), 2, 10e-6).segment("nothing", {});
  EXPECT_EQ(segment.seconds, 0);
  EXPECT_EQ(segment.launch_seconds, 0);
}

TEST(BesideCommunication, LeavesFewerMultiprocessors) {
  // Three instead of four: four full tiles need two waves, eight of 128 x 128 three (1.579 ms), and 32 of
  // 64 x 64 eleven (1.833 ms).
  const KernelModel beside = model_of(toy_gpu()).beside_communication();
  EXPECT_NEAR(beside.matmul("multiply", {1, 256, 512, 896}).seconds, 3 * kHalfTile, kTight);
  EXPECT_NEAR(beside.matmul("multiply", {3, 64, 64, 896}).seconds, kSmallTile, kTight);
}

TEST(BesideCommunication, LastsOnlyAsLongAsTheCollective) {
  // Alone 1 ms; on three multiprocessors 1.579 ms. After half of that half of the work is left.
  const KernelModel model = model_of(toy_gpu());
  const MatmulShape shape = {1, 256, 512, 896};
  const auto seconds = [&](Seconds communication) {
    return model.matmul_beside("multiply", shape, {}, communication).seconds;
  };
  EXPECT_NEAR(seconds(0), kMillisecond, kTight);
  EXPECT_NEAR(seconds(1.5 * kHalfTile), 1.5 * kHalfTile + 0.5 * kMillisecond, kTight);
  EXPECT_NEAR(seconds(3 * kHalfTile), 3 * kHalfTile, kTight);
  EXPECT_NEAR(seconds(1), 3 * kHalfTile, kTight);
}

TEST(BesideCommunication, LeavesAtLeastOneMultiprocessor) {
  hardware::GpuSpec gpu = toy_gpu();
  gpu.communication_multiprocessors = 9;
  EXPECT_NEAR(model_of(gpu).beside_communication().matmul("multiply", {4, 64, 64, 896}).seconds,
              4 * kSmallTile, kTight);
}

TEST(BesideCommunication, IsNeverFaster) {
  const hardware::GpuSpec a100 = config::load_cluster("dgx-a100-80gb").gpu;
  ASSERT_GT(a100.communication_multiprocessors, 0);
  bool slower = false;
  for (const hardware::GpuSpec& gpu : {toy_gpu(), a100}) {
    const KernelModel alone = model_of(gpu);
    const KernelModel beside = alone.beside_communication();
    for (const std::int64_t batch : {1, 3}) {
      for (std::int64_t m = 1; m <= 8192; m = m * 3 / 2 + 1) {
        for (std::int64_t n = 1; n <= 8192; n = n * 3 / 2 + 1) {
          const MatmulShape shape = {batch, m, n, 1024};
          const Seconds quiet = alone.matmul("multiply", shape).seconds;
          const Seconds busy = beside.matmul("multiply", shape).seconds;
          ASSERT_GE(busy, quiet) << gpu.name << ", " << batch << " x " << m << " x " << n;
          slower = slower || busy > quiet;
        }
      }
    }
  }
  EXPECT_TRUE(slower);
}

}  // namespace
}  // namespace trainsim::cost
