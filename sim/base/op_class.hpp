// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace trainsim {

/// Operations of a step as people who write kernels divide them; every modelled kernel belongs to one
/// (docs/output.md, "Operations").
enum class OpClass : std::uint8_t {
  /// Multiplies of linear layers, adapters and logits.
  kMatmul,
  /// From queries, keys and values to the output, whether fused or in single kernels.
  kAttention,
  kNorm,
  kActivation,
  /// Bias, dropout and residual addition between layers.
  kResidual,
  kRotary,
  kEmbedding,
  /// Cross-entropy and metrics of it, without the multiply that makes the logits.
  kLoss,
  /// Adding weight gradients to those of earlier micro-batches in a pass of its own.
  kAccumulation,
  /// Choosing experts, and putting tokens in their order and back.
  kRouting,
  kOptimizer,
};
inline constexpr int kOpClasses = 11;
/// All of them, in the order of tables.
inline constexpr std::array<OpClass, kOpClasses> kAllOpClasses = {
    OpClass::kMatmul,       OpClass::kAttention, OpClass::kNorm,      OpClass::kActivation,
    OpClass::kResidual,     OpClass::kRotary,    OpClass::kEmbedding, OpClass::kLoss,
    OpClass::kAccumulation, OpClass::kRouting,   OpClass::kOptimizer};
/// Those limited by the memory's bandwidth, the optimizer aside; `op.memory.speedup` is of all of them.
inline constexpr std::array<OpClass, 8> kMemoryBoundOps = {
    OpClass::kNorm,      OpClass::kActivation, OpClass::kResidual,     OpClass::kRotary,
    OpClass::kEmbedding, OpClass::kLoss,       OpClass::kAccumulation, OpClass::kRouting};

/// Name for tables, JSON and configurations, such as "matmul".
const char* to_string(OpClass op);
/// What belongs to it, in words: "multiplies of linear layers, adapters and logits".
const char* description(OpClass op);

/// Factors on the speed of operations, by OpClass; 1 = as modelled.
struct OpSpeedups {
  std::array<double, kOpClasses> factors = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

  double of(OpClass op) const { return factors[static_cast<std::size_t>(op)]; }
  double& of(OpClass op) { return factors[static_cast<std::size_t>(op)]; }
  /// Whether any operation is not as modelled.
  bool any() const;
};

}  // namespace trainsim
