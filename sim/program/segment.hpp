// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/op_class.hpp"
#include "sim/base/units.hpp"

namespace trainsim::program {

/// What limits a kernel, and how people group kernels.
enum class KernelKind : std::uint8_t { kMatmul, kAttention, kMemory, kOptimizer, kProfiled };
inline constexpr int kKernelKinds = 5;

/// Name for tables and JSON: "matmul", "attention", "memory", "optimizer", "profiled".
const char* to_string(KernelKind kind);

/// The operation that a kernel belongs to; nothing for measured times, which are those of many.
std::optional<OpClass> op_class(KernelKind kind, std::string_view name);

/// One GPU kernel (or a fused chain of them) of known shape.
struct Kernel {
  std::string name;
  KernelKind kind = KernelKind::kMemory;
  /// Operations executed; 0 for memory-bound kernels.
  Flops flops = 0;
  /// Bytes moved to and from device memory.
  double bytes = 0;
  /// Time on the GPU, launch limit not included.
  Seconds seconds = 0;
  /// Launches that the host issues for it.
  int launches = 1;
};

/// Kernels that run back to back with no communication in between: the unit of compute in a program.
struct Segment {
  std::string name;
  std::vector<Kernel> kernels;
  /// Time of the whole segment on the GPU.
  Seconds seconds = 0;
  /// Time that the host needs to launch it.
  Seconds launch_seconds = 0;
  /// Whether the host waits for each kernel before it launches the next.
  bool blocking = false;
  /// Operations executed.
  Flops flops = 0;
};

}  // namespace trainsim::program
