// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory_resource>
#include <set>
#include <tuple>
#include <vector>

#include "sim/base/units.hpp"

namespace trainsim::memory {

/// How the caching allocator gets memory from the driver.
enum class Segments : std::uint8_t {
  /// One allocation of the driver per segment; blocks never grow (PyTorch's default).
  kFixed,
  /// Segments grow at their end (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
  kExpandable,
};

/// Which stream of PyTorch's allocates; blocks that one has freed don't serve the other.
enum class Pool : std::uint8_t { kMain, kSide };

/// PyTorch's CUDACachingAllocator: sizes are rounded to 512 bytes; requests up to 1 MiB come
/// from segments of 2 MiB, up to 10 MiB from segments of 20 MiB, larger ones from segments of their own,
/// rounded to 2 MiB. The smallest free block that is large enough is taken and split if more than 512 bytes
/// (small) or 1 MiB (large) are left; freed blocks merge with free neighbours and stay cached. When the
/// device is full, segments that are wholly free are given back first, and of expandable ones all free pages
/// (PyTorch 2.x, c10/cuda/CUDACachingAllocator.cpp). What does not fit even then is reserved nevertheless.
class CachingAllocator {
 public:
  using Block = std::uint32_t;

  /// `capacity` bytes are on the device; 0 = any number.
  explicit CachingAllocator(Segments segments = Segments::kFixed, Bytes capacity = 0)
      : segments_(segments), capacity_(capacity) {}

  /// A block of at least `bytes` > 0.
  Block allocate(Bytes bytes, Pool pool = Pool::kMain);
  void free(Block block);

  /// Bytes in blocks that are in use, and bytes held from the driver; now and at their highest.
  Bytes allocated() const { return allocated_; }
  Bytes reserved() const { return reserved_; }
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return peak_reserved_; }
  /// How often cached memory had to be given back (num_alloc_retries of PyTorch's statistics).
  std::int64_t retries() const { return retries_; }

 private:
  static constexpr Block kNone = 0xffffffff;
  /// A piece of a segment, between its neighbours there.
  struct Piece {
    std::uint64_t address = 0;
    Bytes bytes = 0;
    Block previous = kNone;
    Block next = kNone;
    /// Place of its free list.
    std::uint8_t list = 0;
    bool used = false;
    bool small() const { return list % 2 == 0; }
  };
  /// Free pieces by size, then address.
  using FreeList = std::pmr::set<std::tuple<Bytes, std::uint64_t, Block>>;

  void list(Block piece);
  void unlist(Block piece);
  Block add(const Piece& piece);
  void remove(Block piece);
  Block find_or_reserve(Bytes bytes, std::uint8_t list);
  Block reserve(Bytes bytes, std::uint8_t list);
  Block grow(Bytes bytes, std::uint8_t list);
  void give_back_cached();
  void split(Block piece, Bytes bytes);
  /// Makes one piece of two neighbours, of which the first stays.
  void join(Block first, Block second);

  Segments segments_;
  Bytes capacity_;
  std::pmr::unsynchronized_pool_resource memory_;
  std::vector<Piece> pieces_;
  /// Places in `pieces_` that hold none.
  std::vector<Block> vacant_;
  /// Of each pool small pieces, then large ones.
  std::array<FreeList, 4> free_{FreeList(&memory_), FreeList(&memory_), FreeList(&memory_),
                                FreeList(&memory_)};
  /// Where the next segment begins; of expandable segments, the last piece of each list's.
  std::uint64_t next_ = 0;
  std::array<Block, 4> last_{kNone, kNone, kNone, kNone};
  Bytes allocated_ = 0;
  Bytes reserved_ = 0;
  Bytes peak_allocated_ = 0;
  Bytes peak_reserved_ = 0;
  std::int64_t retries_ = 0;
};

}  // namespace trainsim::memory
