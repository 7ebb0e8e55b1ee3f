// SPDX-License-Identifier: Apache-2.0
#include "sim/hardware/rings.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace trainsim::hardware {

namespace {

using Cables = std::vector<std::vector<std::int64_t>>;

/// Depth-first search for a given number of rings.
class RingSearch {
 public:
  RingSearch(Cables& free, std::size_t wanted) : free_(free), size_(free.size()), wanted_(wanted) {}

  bool run() { return begin_ring(); }
  const std::vector<std::vector<std::int64_t>>& rings() const { return rings_; }

 private:
  /// Steps after which the search gives up; a full mesh of eight takes 453.
  static constexpr std::int64_t kMostSteps = 20'000;

  bool begin_ring() {
    if (rings_.size() == wanted_) return true;
    std::vector<std::int64_t> ring = {0};
    std::vector<bool> seen(size_, false);
    seen[0] = true;
    return extend(ring, seen);
  }

  bool extend(std::vector<std::int64_t>& ring, std::vector<bool>& seen) {
    if (++steps_ > kMostSteps) return false;
    const auto at = static_cast<std::size_t>(ring.back());
    if (ring.size() == size_) return close(ring);
    for (std::size_t step = 1; step < size_; ++step) {
      const std::size_t next = (at + step) % size_;
      if (seen[next] || free_[at][next] == 0) continue;
      --free_[at][next];
      seen[next] = true;
      ring.push_back(static_cast<std::int64_t>(next));
      if (extend(ring, seen)) return true;
      ring.pop_back();
      seen[next] = false;
      ++free_[at][next];
    }
    return false;
  }

  bool close(const std::vector<std::int64_t>& ring) {
    std::int64_t& last = free_[static_cast<std::size_t>(ring.back())][0];
    if (last == 0) return false;
    --last;
    rings_.push_back(ring);
    if (begin_ring()) return true;
    rings_.pop_back();
    ++last;
    return false;
  }

  Cables& free_;
  std::size_t size_;
  std::size_t wanted_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<std::int64_t>> rings_;
};

}  // namespace

std::vector<std::vector<std::int64_t>> disjoint_rings(Cables cables) {
  if (cables.size() < 2) return {};
  std::int64_t most = std::accumulate(cables[0].begin(), cables[0].end(), std::int64_t{0});
  for (const auto& row : cables)
    most = std::min(most, std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  for (std::int64_t wanted = most; wanted > 0; --wanted) {
    Cables free = cables;
    RingSearch search(free, static_cast<std::size_t>(wanted));
    if (search.run()) return search.rings();
  }
  return {};
}

}  // namespace trainsim::hardware
