// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/program/segment.hpp"

namespace trainsim::program {

namespace {

/// Beginnings of the names of memory-bound kernels (sim/lowering/kernels.cpp), and the class of the kernel.
/// What has none of them is bias, dropout or addition.
constexpr std::array<std::pair<std::string_view, OpClass>, 17> kBeginnings = {
    {{"attention", OpClass::kAttention},
     {"alibi", OpClass::kAttention},
     {"scale + mask + softmax", OpClass::kAttention},
     {"softmax backward", OpClass::kAttention},
     {"qkv gradient layout", OpClass::kAttention},
     {"norm", OpClass::kNorm},
     {"embedding norm", OpClass::kNorm},
     {"activation", OpClass::kActivation},
     {"gated activation", OpClass::kActivation},
     {"rotary", OpClass::kRotary},
     {"embedding", OpClass::kEmbedding},
     {"position add", OpClass::kEmbedding},
     {"softmax cross-entropy", OpClass::kLoss},
     {"metrics of the loss", OpClass::kLoss},
     {"gradient accumulation", OpClass::kAccumulation},
     {"routing", OpClass::kRouting},
     {"tokens", OpClass::kRouting}}};

OpClass class_of_memory_bound(std::string_view name) {
  const auto* const found =
      std::find_if(kBeginnings.begin(), kBeginnings.end(),
                   [name](const auto& beginning) { return name.starts_with(beginning.first); });
  return found == kBeginnings.end() ? OpClass::kResidual : found->second;
}

/// Multiplies of attention that is not fused; the output projection is a linear layer.
bool is_attention_multiply(std::string_view name) {
  return name.starts_with("attention scores") || name.starts_with("attention values");
}

}  // namespace

std::optional<OpClass> op_class(KernelKind kind, std::string_view name) {
  switch (kind) {
    case KernelKind::kMatmul:
      return is_attention_multiply(name) ? OpClass::kAttention : OpClass::kMatmul;
    case KernelKind::kAttention:
      return OpClass::kAttention;
    case KernelKind::kMemory:
      return class_of_memory_bound(name);
    case KernelKind::kOptimizer:
      return OpClass::kOptimizer;
    case KernelKind::kProfiled:
      break;
  }
  return std::nullopt;
}

}  // namespace trainsim::program
