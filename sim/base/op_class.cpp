// SPDX-License-Identifier: Apache-2.0
#include "sim/base/op_class.hpp"

#include <algorithm>

namespace trainsim {

namespace {

struct Names {
  const char* name;
  const char* description;
};
constexpr std::array<Names, kOpClasses> kNames = {
    {{"matmul", "multiplies of linear layers, adapters and logits"},
     {"attention", "from queries, keys and values to their output, fused or not"},
     {"norm", "LayerNorm and RMSNorm"},
     {"activation", "GELU, SwiGLU and the like"},
     {"residual", "bias, dropout and residual additions between layers, casts to 8 bits"},
     {"rotary", "rotary position embeddings"},
     {"embedding", "embedding lookup and its gradient"},
     {"loss", "cross-entropy and its metrics, without the logits"},
     {"accumulation", "adding up weight gradients in a pass of its own"},
     {"routing", "choosing experts, and putting tokens in their order and back"},
     {"optimizer", "gradient norm, optimizer and clearing of gradients"}}};

}  // namespace

const char* to_string(OpClass op) {
  return kNames[static_cast<std::size_t>(op)].name;
}

const char* description(OpClass op) {
  return kNames[static_cast<std::size_t>(op)].description;
}

bool OpSpeedups::any() const {
  return std::any_of(factors.begin(), factors.end(), [](double factor) { return factor != 1.0; });
}

}  // namespace trainsim
