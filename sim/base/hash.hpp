// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace trainsim {

/// Scrambles a word so that neighbours have nothing in common (splitmix64, Steele et al. 2014).
constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

}  // namespace trainsim
