// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

namespace trainsim::sweep {

/// One point of a sweep over a size.
struct Trial {
  /// What was varied; more than 0.
  double size = 0;
  /// Tokens per second and GPU; more than 0.
  double rate = 0;
};

/// Gain of the rate below which doubling the size is not worth it.
inline constexpr double kSmallGain = 0.01;

/// By how much a doubling of the size raises the rate between two neighbours, if it does so at the same pace
/// all the way: (rate ratio)^(1 / log2(size ratio)) - 1. REQUIRES: a.size < b.size.
double gain_per_doubling(const Trial& a, const Trial& b);

/// The smallest size from which on, up to the largest, no doubling gains kSmallGain; nothing when the last
/// one still does, or when there are fewer than two trials. Trials come in any order.
std::optional<Trial> find_knee(std::vector<Trial> trials);

}  // namespace trainsim::sweep
