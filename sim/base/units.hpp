// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace trainsim {

/// A duration or a point in simulated time, in seconds.
using Seconds = double;
/// A size in bytes. Integer, so that memory sums are exact; every size here stays far below 2^63.
using Bytes = std::int64_t;
/// A rate in bytes per second, one direction.
using BytesPerSecond = double;
/// A number of floating-point operations (a multiply-add counts as two).
using Flops = double;
/// A rate in floating-point operations per second.
using FlopsPerSecond = double;
/// A power in watts.
using Watts = double;

inline constexpr Seconds kSecondsPerHour = 3600.0;
inline constexpr Seconds kSecondsPerDay = 86400.0;

inline constexpr double kKilo = 1e3;
inline constexpr double kMega = 1e6;
inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;
inline constexpr double kKibi = 1024.0;
inline constexpr double kMebi = 1024.0 * 1024.0;
inline constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;

}  // namespace trainsim
