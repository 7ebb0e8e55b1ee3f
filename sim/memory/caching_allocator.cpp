// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/caching_allocator.hpp"

#include <algorithm>
#include <iterator>

namespace trainsim::memory {

namespace {

constexpr Bytes kMiB = Bytes{1024} * 1024;
/// Names are those of PyTorch's source.
constexpr Bytes kMinBlock = 512;
constexpr Bytes kSmallSize = kMiB;
constexpr Bytes kSmallBuffer = 2 * kMiB;
constexpr Bytes kLargeBuffer = 20 * kMiB;
constexpr Bytes kMinLargeAllocation = 10 * kMiB;
constexpr Bytes kRoundLarge = 2 * kMiB;
/// Far enough apart for expandable segments never to meet.
constexpr std::uint64_t kListDistance = std::uint64_t{1} << 60U;

Bytes round_up(Bytes bytes, Bytes multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

Bytes segment_size(Bytes bytes) {
  if (bytes <= kSmallSize) return kSmallBuffer;
  return bytes < kMinLargeAllocation ? kLargeBuffer : round_up(bytes, kRoundLarge);
}

}  // namespace

CachingAllocator::Block CachingAllocator::allocate(Bytes bytes, Pool pool) {
  const Bytes rounded = std::max(kMinBlock, round_up(bytes, kMinBlock));
  const int large = rounded <= kSmallSize ? 0 : 1;
  const Block piece = find_or_reserve(rounded, static_cast<std::uint8_t>(2 * static_cast<int>(pool) + large));
  unlist(piece);
  pieces_[piece].used = true;
  split(piece, rounded);
  allocated_ += pieces_[piece].bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return piece;
}

void CachingAllocator::free(Block block) {
  pieces_[block].used = false;
  allocated_ -= pieces_[block].bytes;
  if (const Block next = pieces_[block].next; next != kNone && !pieces_[next].used) {
    unlist(next);
    join(block, next);
  }
  if (const Block previous = pieces_[block].previous; previous != kNone && !pieces_[previous].used) {
    unlist(previous);
    join(previous, block);
    block = previous;
  }
  list(block);
}

void CachingAllocator::list(Block piece) {
  const Piece& what = pieces_[piece];
  free_[what.list].emplace(what.bytes, what.address, piece);
}

void CachingAllocator::unlist(Block piece) {
  const Piece& what = pieces_[piece];
  free_[what.list].erase({what.bytes, what.address, piece});
}

CachingAllocator::Block CachingAllocator::add(const Piece& piece) {
  if (vacant_.empty()) {
    pieces_.push_back(piece);
    return static_cast<Block>(pieces_.size() - 1);
  }
  const Block place = vacant_.back();
  vacant_.pop_back();
  pieces_[place] = piece;
  return place;
}

void CachingAllocator::remove(Block piece) {
  vacant_.push_back(piece);
}

CachingAllocator::Block CachingAllocator::find_or_reserve(Bytes bytes, std::uint8_t list) {
  const FreeList& pieces = free_[list];
  const auto found = pieces.lower_bound({bytes, 0, 0});
  if (found != pieces.end()) return std::get<2>(*found);
  return segments_ == Segments::kExpandable ? grow(bytes, list) : reserve(segment_size(bytes), list);
}

CachingAllocator::Block CachingAllocator::reserve(Bytes bytes, std::uint8_t list) {
  if (capacity_ > 0 && reserved_ + bytes > capacity_) give_back_cached();
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  const Block piece = add({next_, bytes, kNone, kNone, list, false});
  next_ += static_cast<std::uint64_t>(bytes);
  this->list(piece);
  return piece;
}

/// Only what the free end of the pool lacks is mapped.
CachingAllocator::Block CachingAllocator::grow(Bytes bytes, std::uint8_t list) {
  Block& last = last_[list];
  const bool free_end = last != kNone && !pieces_[last].used;
  const Bytes there = free_end ? pieces_[last].bytes : 0;
  const Bytes more = round_up(bytes - there, list % 2 == 0 ? kSmallBuffer : kLargeBuffer);
  reserved_ += more;
  if (capacity_ > 0 && reserved_ > capacity_) {
    // Pages are unmapped wherever they are free, so that nothing but what is in use counts.
    ++retries_;
    reserved_ = std::max(capacity_, allocated_ + bytes);
  }
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  if (free_end) {
    unlist(last);
    pieces_[last].bytes += more;
  } else {
    const std::uint64_t end = last == kNone
                                  ? list * kListDistance
                                  : pieces_[last].address + static_cast<std::uint64_t>(pieces_[last].bytes);
    const Block piece = add({end, more, last, kNone, list, false});
    if (last != kNone) pieces_[last].next = piece;
    last = piece;
  }
  this->list(last);
  return last;
}

void CachingAllocator::give_back_cached() {
  ++retries_;
  for (FreeList& list : free_) {
    for (auto entry = list.begin(); entry != list.end();) {
      const Block piece = std::get<2>(*entry);
      const bool whole = pieces_[piece].previous == kNone && pieces_[piece].next == kNone;
      if (whole) {
        reserved_ -= pieces_[piece].bytes;
        remove(piece);
      }
      entry = whole ? list.erase(entry) : std::next(entry);
    }
  }
}

void CachingAllocator::split(Block piece, Bytes bytes) {
  const Piece what = pieces_[piece];
  const Bytes rest = what.bytes - bytes;
  const bool worth =
      what.small() || segments_ == Segments::kExpandable ? rest >= kMinBlock : rest > kSmallSize;
  if (!worth) return;
  const std::uint64_t address = what.address + static_cast<std::uint64_t>(bytes);
  const Block other = add({address, rest, piece, what.next, what.list, false});
  if (what.next != kNone) pieces_[what.next].previous = other;
  pieces_[piece].next = other;
  pieces_[piece].bytes = bytes;
  if (last_[what.list] == piece) last_[what.list] = other;
  list(other);
}

void CachingAllocator::join(Block first, Block second) {
  Piece& stays = pieces_[first];
  stays.bytes += pieces_[second].bytes;
  stays.next = pieces_[second].next;
  if (stays.next != kNone) pieces_[stays.next].previous = first;
  if (last_[stays.list] == second) last_[stays.list] = first;
  remove(second);
}

}  // namespace trainsim::memory
