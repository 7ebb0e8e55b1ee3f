// SPDX-License-Identifier: Apache-2.0
// Rules of PyTorch's allocator, each with sizes worked out by hand.
#include "sim/memory/caching_allocator.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace trainsim::memory {
namespace {

constexpr Bytes kMiB = 1024 * 1024;

TEST(CachingAllocator, RoundsToBlocksAndSegments) {
  CachingAllocator allocator;
  allocator.allocate(1);
  EXPECT_EQ(allocator.allocated(), 512);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  // Above 1 MiB from segments of 20 MiB, from 10 MiB on from their own, in multiples of 2 MiB.
  allocator.allocate(3 * kMiB);
  EXPECT_EQ(allocator.reserved(), 22 * kMiB);
  allocator.allocate(31 * kMiB);
  EXPECT_EQ(allocator.reserved(), 54 * kMiB);
}

TEST(CachingAllocator, ReusesAndSplitsWhatIsCached) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(40 * kMiB));
  EXPECT_EQ(allocator.allocated(), 0);
  const auto first = allocator.allocate(16 * kMiB);
  const auto second = allocator.allocate(24 * kMiB);
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
  EXPECT_EQ(allocator.allocated(), 40 * kMiB);
  // Neighbours that are both free are one block again.
  allocator.free(first);
  allocator.free(second);
  allocator.allocate(40 * kMiB);
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

/// What one stream has freed is cached for that stream alone, in segments of either kind; and is given back
/// for the other when the device is full.
TEST(CachingAllocator, KeepsStreamsApart) {
  for (const Segments segments : {Segments::kFixed, Segments::kExpandable}) {
    CachingAllocator allocator(segments);
    allocator.free(allocator.allocate(40 * kMiB));
    allocator.free(allocator.allocate(40 * kMiB, Pool::kSide));
    EXPECT_EQ(allocator.reserved(), 80 * kMiB);
    allocator.allocate(40 * kMiB);
    allocator.allocate(40 * kMiB, Pool::kSide);
    EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  }
  CachingAllocator full(Segments::kFixed, 60 * kMiB);
  full.free(full.allocate(40 * kMiB, Pool::kSide));
  full.allocate(40 * kMiB);
  EXPECT_EQ(full.peak_reserved(), 40 * kMiB);
  EXPECT_EQ(full.retries(), 1);
}

TEST(CachingAllocator, TakesTheSmallestBlockThatIsLargeEnough) {
  CachingAllocator allocator;
  const auto large = allocator.allocate(64 * kMiB);
  const auto small = allocator.allocate(32 * kMiB);
  allocator.free(large);
  allocator.free(small);
  allocator.allocate(30 * kMiB);
  // The block of 64 is still whole.
  allocator.allocate(64 * kMiB);
  EXPECT_EQ(allocator.reserved(), 96 * kMiB);
}

/// Two blocks of 30 MiB, the second of which stays: 40 MiB do not fit into the 30 that are free. An
/// expandable segment only lacks 10 MiB at its end if its end is free.
TEST(CachingAllocator, IsFragmentedByBlocksThatStay) {
  CachingAllocator fixed;
  const auto gone = fixed.allocate(30 * kMiB);
  fixed.allocate(30 * kMiB);
  fixed.free(gone);
  fixed.allocate(40 * kMiB);
  EXPECT_EQ(fixed.reserved(), 100 * kMiB);

  CachingAllocator expandable(Segments::kExpandable);
  expandable.allocate(40 * kMiB);
  expandable.free(expandable.allocate(40 * kMiB));
  expandable.allocate(60 * kMiB);
  EXPECT_EQ(expandable.reserved(), 100 * kMiB);
}

TEST(CachingAllocator, GivesCachedSegmentsBackBeforeItFails) {
  CachingAllocator allocator(Segments::kFixed, 100 * kMiB);
  allocator.free(allocator.allocate(60 * kMiB));
  allocator.allocate(80 * kMiB);
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  EXPECT_EQ(allocator.peak_reserved(), 80 * kMiB);
  EXPECT_EQ(allocator.retries(), 1);
  allocator.allocate(40 * kMiB);
  EXPECT_EQ(allocator.peak_reserved(), 120 * kMiB);
  EXPECT_EQ(allocator.retries(), 2);
}

/// 60 MiB behind 40 MiB that are in use find the device full, until the 40 MiB before those are unmapped.
TEST(CachingAllocator, UnmapsFreePagesOfExpandableSegments) {
  CachingAllocator expandable(Segments::kExpandable, 100 * kMiB);
  const auto gone = expandable.allocate(40 * kMiB);
  expandable.allocate(40 * kMiB);
  expandable.free(gone);
  expandable.allocate(60 * kMiB);
  EXPECT_EQ(expandable.peak_reserved(), 100 * kMiB);
  EXPECT_EQ(expandable.retries(), 1);
  expandable.allocate(60 * kMiB);
  EXPECT_GE(expandable.peak_reserved(), 160 * kMiB);
}

TEST(CachingAllocator, RemembersItsHighestMarks) {
  CachingAllocator allocator;
  std::vector<CachingAllocator::Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(20 * kMiB));
  for (const auto block : blocks) allocator.free(block);
  EXPECT_EQ(allocator.peak_allocated(), 80 * kMiB);
  EXPECT_EQ(allocator.peak_reserved(), 80 * kMiB);
}

}  // namespace
}  // namespace trainsim::memory
