// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

namespace trainsim {

/// Scrambles a word so that neighbours have nothing in common (splitmix64, Steele et al. 2014).
constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

/// A fingerprint of a text that is the same on every platform (FNV-1a with 64 bits, scrambled); `seed` chains
/// several texts.
constexpr std::uint64_t fingerprint(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return scramble(hash);
}

}  // namespace trainsim
